// Connects to host.sock; where no daemon listens, has one started and waits for it for a bounded time.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"
#include "shim.h"

// Longer than `serve --background` waits, so that its reason is heard. Whoever has the turn to start one, and gets no
// further, holds up nobody for longer than PATIENCE_MS.
enum { START_MS = 45000, RETRY_MS = 5, PATIENCE_MS = 10000 };

// As connect; a wait with a limit is broken off for whoever is stopped and goes on, though no signal is caught (signal(7)).
static int connect_patiently(int fd, const struct sockaddr_un *address) {
  int connected;
  do connected = connect(fd, (const struct sockaddr *)address, sizeof *address);
  while (connected != 0 && errno == EINTR);
  return connected;
}

// A full backlog is waited for, as long as a daemon that starts is.
int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct timeval limit = {.tv_sec = START_MS / 1000}, none = {0};
  if (strlen(path) >= sizeof address.sun_path)
    give_up(STATUS_USAGE, "the socket's path is longer than 107 bytes: ", path);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up(STATUS_FAILED, "socket: ", strerror(errno));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect_patiently(fd, &address) == 0) {
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    return fd;
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool is_absent(int error) { return error == ENOENT || error == ECONNREFUSED; }

static _Noreturn void give_up_dialling(const char *path) {
  int status = errno == EACCES || errno == EPERM ? STATUS_NOT_AUTHORISED : STATUS_UNAVAILABLE;
  char what[160];
  strcpy(what, "no daemon answers (");
  strncat(what, strerror(errno), 60);
  strcat(what, status == STATUS_UNAVAILABLE ? "); start one with `sallyport serve`: "
                                            : "); this user may not use the socket: ");
  give_up(status, what, path);
}

// The turn to start a daemon for that path: a name that one process at a time can have, and that nobody has once that
// has ended. -1 while another one has it.
static int take_turn(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up(STATUS_FAILED, "socket: ", strerror(errno));
  memcpy(address.sun_path + 1, path, length); // behind a zero byte: a name in no folder
  size_t named = offsetof(struct sockaddr_un, sun_path) + 1 + length;
  if (bind(fd, (struct sockaddr *)&address, (socklen_t)named) == 0) return fd;
  close(fd);
  return -1;
}

int dial(const char *path, bool may_start) {
  int fd = connect_to(path);
  if (fd >= 0) return fd;
  if (!may_start || !is_absent(errno)) give_up_dialling(path);

  // Many hosts may come at once: whose turn it is starts one, and all connect to that. Whoever has the turn looks once
  // more before: the one that had it let go of it when a daemon answered.
  int turn = -1, starter = 0;
  const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
  const int64_t began = now_ms();
  for (int64_t now = began; now < began + START_MS; nanosleep(&pause, NULL), now = now_ms()) {
    int status;
    if (turn < 0) turn = take_turn(path);
    fd = connect_to(path);
    if (fd >= 0) {
      if (turn >= 0) close(turn);
      return fd;
    }
    if (!is_absent(errno)) give_up_dialling(path);
    if (starter == 0 && (turn >= 0 || now > began + PATIENCE_MS)) {
      starter = start_daemon();
      if (starter < 0)
        give_up(STATUS_UNAVAILABLE, "no daemon answers, and none could be started: ", strerror(errno));
    }
    if (starter > 0 && waitpid(starter, &status, WNOHANG) == starter && status != 0)
      give_up(STATUS_UNAVAILABLE,
              "no daemon answers, and `sallyport serve --background` failed; run it to see why: ", path);
  }
  give_up(STATUS_UNAVAILABLE, "the daemon that was started does not answer within 45 s: ", path);
}
