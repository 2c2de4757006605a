// SPDX-License-Identifier: GPL-2.0
// The control socket's verbs: a request's fields are checked by name and type, then the Daemon is
// asked.
#pragma once

#include "control.hpp"
#include "daemon.hpp"

namespace qgpu {

// One request {"verb": NAME, ...} of this peer. EPERM for a change by anybody but root, EINVAL for
// an unknown verb or field.
ControlServer::Answer answerRequest(Daemon &daemon, const nlohmann::json &request,
                                    const Peer &peer);

// What `status` answers.
nlohmann::json statusJson(Daemon &daemon);

}  // namespace qgpu
