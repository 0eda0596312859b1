// Asks the kernel who connected the socket on fd 3; Node has no call for it.
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int peer_main(void) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  char line[64];
  if (getsockopt(FD_CONTROL, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) die("peer", "fd 3", errno);
  // An unconnected socket answers ids of -1. Pid 0 is a peer outside this pid namespace; its uid holds.
  if (peer.uid == (uid_t)-1 || peer.gid == (gid_t)-1) refuse("peer", "fd 3", "not a connected unix socket");
  int bytes = snprintf(line, sizeof line, "%u %u %d\n", peer.uid, peer.gid, peer.pid);
  return write_all(STDOUT_FILENO, line, (size_t)bytes) ? 0 : EXIT_SETUP;
}
