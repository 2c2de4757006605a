// SPDX-License-Identifier: GPL-2.0
/*
 * vmexit CODE: leaves QEMU through isa-debug-exit, so that the host sees the exit status (CODE << 1) | 1.
 * Static, because it lives in the initramfs. Never returns on success: the machine is gone.
 */
#include <stdlib.h>
#include <sys/io.h>
#include <termios.h>
#include <unistd.h>

#define DEBUG_EXIT_PORT 0xf4

int main(int argc, char **argv)
{
	tcdrain(STDOUT_FILENO); /* what was printed must reach the host first */
	sync();
	if (argc != 2 || iopl(3))
		return 1;
	outl(atoi(argv[1]), DEBUG_EXIT_PORT);
	return 1;
}
