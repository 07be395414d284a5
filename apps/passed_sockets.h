// Sockets that systemd opens for the program (socket activation, sd_listen_fds(3)).
#pragma once

#include <vector>

// Returns the descriptors of the sockets that LISTEN_FDS counts, if LISTEN_PID is this process, and clears these
// variables. Called before threads start. Throws qkv::Error for a LISTEN_FDS that is no number.
std::vector<int> passed_sockets();
