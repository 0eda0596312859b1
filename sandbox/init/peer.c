// Asks the kernel who connected the sockets from fd 3 on; Node has no call for it.
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

// One line for each socket, in the order of the numbers; `-` where the kernel knows nobody.
int peer_main(void) {
  for (int fd = FD_CONTROL;; fd++) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    char line[64] = "-\n";
    int bytes = 2;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
      if (errno == EBADF && fd > FD_CONTROL) return 0;
      if (errno == EBADF) die("peer", "fd 3", errno);
      // An unconnected socket answers ids of -1. Pid 0 is a peer outside this pid namespace; its uid holds.
    } else if (peer.uid != (uid_t)-1 && peer.gid != (gid_t)-1) {
      bytes = snprintf(line, sizeof line, "%u %u %d\n", peer.uid, peer.gid, peer.pid);
    }
    if (!write_all(STDOUT_FILENO, line, (size_t)bytes)) return EXIT_SETUP;
  }
}
