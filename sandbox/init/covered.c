// PID 1's part in the covers over /proc: it says where, and waits until they are there.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "covers.h"
#include "init.h"
#include "sandbox.h"

static const char somebody[] = "the launcher's child";

static void ask(const int namespaces[NAMESPACES]) {
  char byte = 0;
  union {
    char bytes[CMSG_SPACE(NAMESPACES * sizeof(int))];
    struct cmsghdr head;
  } control = {.bytes = {0}};
  struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(NAMESPACES * sizeof(int));
  memcpy(CMSG_DATA(head), namespaces, NAMESPACES * sizeof(int));
  if (sendmsg(FD_COVERS, &message, MSG_NOSIGNAL) != 1) die("covers", somebody, errno);
}

// Whoever stopped the child could have this wait beyond the supervisor's end.
static void wait_for_either(void) {
  struct pollfd ends[2] = {{.fd = FD_COVERS, .events = POLLIN}, {.fd = FD_CONTROL, .events = POLLRDHUP}};
  while (poll(ends, 2, -1) < 0)
    if (errno != EINTR) die("covers", somebody, errno);
  if (ends[0].revents == 0) refuse("covers", "gate", "the supervisor went away before /proc was covered");
}

static void wait_for_answer(void) {
  struct covered answer;
  ssize_t got;
  wait_for_either();
  do {
    got = recv(FD_COVERS, &answer, sizeof answer, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) die("covers", somebody, errno);
  if (got != sizeof answer) refuse("covers", somebody, "it ended before /proc was covered");
  answer.object[sizeof answer.object - 1] = '\0';
  if (answer.error != 0) die("covers", answer.object, (int)answer.error);
}

void have_covered(void) {
  static const char *const names[NAMESPACES] = {"/proc/self/ns/user", "/proc/self/ns/mnt"};
  int namespaces[NAMESPACES];
  for (int index = 0; index < NAMESPACES; index++) {
    namespaces[index] = open(names[index], O_RDONLY | O_CLOEXEC);
    if (namespaces[index] < 0) die("covers", names[index], errno);
  }
  ask(namespaces);
  for (int index = 0; index < NAMESPACES; index++) close(namespaces[index]);
  wait_for_answer();
}
