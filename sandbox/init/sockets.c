// Kinds of socket that the system-call filters keep out: whoever asks for one waits here until it was told, and gets its errno.
//
// The sandbox's own filter asks of them too and has no listener: the kernel takes the newest filter's, which is ours, and
// without ours it says ENOSYS. So what is refused stays refused whatever becomes of this process.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "egress.h"
#include "init.h"

enum { TYPE_MASK = 0xf };

static int listener = -1;

void open_watched(const struct egress_orders *orders) {
  struct sock_fprog program = {.len = (unsigned short)orders->watched_count,
                               .filter = (struct sock_filter *)orders->watched};
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  // EBUSY where whoever runs us listens already: a kernel has one for a chain of filters.
  if (fd < 0) die("egress", "listener of the watched filter", errno);
  listener = (int)fd;
}

int watched_fd(void) { return listener; }

// The errno on which programs fall back, such as Go from MPTCP to TCP.
static int errno_of(unsigned family) {
  return family == AF_INET || family == AF_INET6 || family == AF_NETLINK ? EPROTONOSUPPORT : EAFNOSUPPORT;
}

// One question, which epoll has seen: with none the kernel would have us wait for the next.
void answer_watched(void) {
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
    // ENOENT: who asked is gone.
    if (errno == EINTR || errno == ENOENT) return;
    die("egress", "listener of the watched filter", errno);
  }
  unsigned family = (unsigned)asked.data.args[0], type = (unsigned)asked.data.args[1] & TYPE_MASK;
  notice("socket %u %u %u", family, type, (unsigned)asked.data.args[2]);
  struct seccomp_notif_resp answer = {.id = asked.id, .error = -errno_of(family)};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0 && errno != ENOENT && errno != EINTR)
    die("egress", "answer of the watched filter", errno);
}
