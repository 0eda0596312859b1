// Whether there is nothing at the path that a process named. It may lie on a share that hangs: a thread looks, for as long as
// one may wait, and where it has not come back by then the path counts as absent.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress.h"

enum { LOOK_MS = 500, STACK_BYTES = 64 << 10 };
enum { THERE = 1, ABSENT = 2 };

static char whole[sizeof((struct sockaddr_un *)0)->sun_path + 64];
static int answers = -1;
// From the start of a look until its answer was taken: until then the thread has the path.
static bool is_looking;

static void *look(void *unused) {
  struct stat found;
  uint64_t answer = stat(whole, &found) == 0 ? THERE : ABSENT;
  (void)!write(answers, &answer, sizeof answer);
  return unused;
}

static bool begin_look(void) {
  pthread_t thread;
  pthread_attr_t apart;
  pthread_attr_init(&apart);
  pthread_attr_setstacksize(&apart, STACK_BYTES);
  pthread_attr_setdetachstate(&apart, PTHREAD_CREATE_DETACHED);
  return pthread_create(&thread, &apart, look, NULL) == 0;
}

bool is_absent(pid_t pid, const char *path) {
  uint64_t answer = 0;
  if (answers < 0) answers = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (answers < 0) return true;
  // What came too late for the one before.
  if (is_looking && read(answers, &answer, sizeof answer) > 0) is_looking = false;
  if (is_looking) return true;
  if (*path == '/')
    snprintf(whole, sizeof whole, "/proc/%d/root%s", pid, path);
  else
    snprintf(whole, sizeof whole, "/proc/%d/cwd/%s", pid, path);
  is_looking = begin_look();
  if (!is_looking) return true;
  struct pollfd wait = {.fd = answers, .events = POLLIN};
  if (poll(&wait, 1, LOOK_MS) <= 0 || read(answers, &answer, sizeof answer) <= 0) return true;
  is_looking = false;
  return answer != THERE;
}
