// SPDX-License-Identifier: GPL-2.0
// The kernel that the load runs, as PTX text that the driver compiles for the card at hand.
//
// It does a number of loops, each the same number of dependent instructions, so its length is work
// and not time: a kernel that is taken off the card goes on where it was. One thread adds the
// loops done to a total in device memory and writes the total to host memory after every chunk, so
// progress is seen from the host without waiting for an end. Words: 0 = loops, 1 = kernels ended.
#pragma once

namespace qgpu {

constexpr char kCudaKernelName[] = "qgpu_spin";

constexpr char kCudaKernel[] = R"(
.version 6.3
.target sm_75
.address_size 64

.visible .entry qgpu_spin(
	.param .u64 total,
	.param .u64 mirror,
	.param .u64 loops,
	.param .u64 chunk)
{
	.reg .pred %p<6>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<12>;

	ld.param.u64 %rd1, [total];
	ld.param.u64 %rd2, [mirror];
	ld.param.u64 %rd3, [loops];
	ld.param.u64 %rd4, [chunk];
	cvta.to.global.u64 %rd1, %rd1;
	cvta.to.global.u64 %rd2, %rd2;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	or.b32 %r3, %r1, %r2;
	setp.eq.u32 %p1, %r3, 0;
	mov.u64 %rd5, 0;
	@%p1 ld.volatile.global.u64 %rd5, [%rd1];
	add.u32 %r4, %r1, 1;
	mov.u64 %rd6, %rd3;
OUTER:
	min.u64 %rd7, %rd6, %rd4;
	mov.u64 %rd8, %rd7;
INNER:
	mad.lo.u32 %r4, %r4, 1664525, 1013904223;
	xor.b32 %r4, %r4, %r1;
	mad.lo.u32 %r4, %r4, 1664525, 1013904223;
	xor.b32 %r4, %r4, %r1;
	mad.lo.u32 %r4, %r4, 1664525, 1013904223;
	xor.b32 %r4, %r4, %r1;
	mad.lo.u32 %r4, %r4, 1664525, 1013904223;
	xor.b32 %r4, %r4, %r1;
	sub.u64 %rd8, %rd8, 1;
	setp.ne.u64 %p2, %rd8, 0;
	@%p2 bra INNER;
	add.u64 %rd5, %rd5, %rd7;
	@%p1 st.volatile.global.u64 [%rd2], %rd5;
	sub.u64 %rd6, %rd6, %rd7;
	setp.ne.u64 %p3, %rd6, 0;
	@%p3 bra OUTER;
	@!%p1 bra DONE;
	st.volatile.global.u64 [%rd1], %rd5;
	ld.volatile.global.u64 %rd9, [%rd1+8];
	add.u64 %rd9, %rd9, 1;
	st.volatile.global.u64 [%rd1+8], %rd9;
	membar.sys;
	st.volatile.global.u64 [%rd2+8], %rd9;
DONE:
	setp.eq.u64 %p4, %rd3, 0;
	@%p4 st.global.u32 [%rd1+16], %r4;
	ret;
}
)";

}  // namespace qgpu
