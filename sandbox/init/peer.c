// Asks the kernel who connected sockets, and widens what they may be sent at once; Node has a call for neither.
#include "init.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// `uid gid pid`, or `-` where the kernel knows nobody.
static int describe(int fd, char *text, size_t size) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  // An unconnected socket answers ids of -1. Pid 0 is a peer outside this pid namespace; its uid holds.
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid == (uid_t)-1 || peer.gid == (gid_t)-1)
    return snprintf(text, size, "-");
  return snprintf(text, size, "%u %u %d", peer.uid, peer.gid, peer.pid);
}

// As much as the kernel then takes from the daemon before the peer has read any of it; it counts its own pages too, and doubles
// what is asked for.
enum { SEND_BYTES = 1 << 20 };

// With the usual 208 KiB the rest of a long result waits in the daemon, behind its digest and its record. A user who may not
// go beyond net.core.wmem_max gets that much, doubled.
static void widen(int fd) {
  int bytes = SEND_BYTES;
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

// Takes what comes next, and the descriptor that comes with it, -1 where none does. False at the channel's end.
static bool take_next(int *fd) {
  char bytes[4096];
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head;
  } control;
  struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  ssize_t got;
  do {
    got = recvmsg(FD_CONTROL, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) die("peer", "channel", errno);
  const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  *fd = -1;
  if (head != NULL && head->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(head), sizeof *fd);
  return got > 0;
}

// Each socket comes alone, since Node sends the next when it has heard that this one is here.
int peer_main(void) {
  // Whoever was stopped reads no channel's end; one that ended before this is seen there.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) die("peer", "the daemon's end", errno);
  let_go_of_code();
  for (int fd; take_next(&fd);) {
    char peer[64], line[128];
    if (fd < 0) continue;
    describe(fd, peer, sizeof peer);
    widen(fd);
    close(fd);
    int length = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE_ACK\"}\n\"%s\"\n", peer);
    if (!write_all(FD_CONTROL, line, (size_t)length)) return EXIT_SETUP;
  }
  return 0;
}
