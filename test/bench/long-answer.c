// A line of 1 MiB from one process to another, as long answers go, and how long each took, µs: over a socket as Node makes for a
// child's stdout; with a process between that takes all of it before it hands anything on, as a daemon must that judges it; and
// with one more that passes on what comes, as a shim does.
//   long-answer ROUNDS BETWEEN      BETWEEN is 0, 1 or 2
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** Bytes of the line; of one read, as Node's and the shim's are; of what the daemon's socket takes at once; rounds before any counts */
enum { length = 1 << 20, room = 65536, sent = 1 << 20, warm = 20 };

static char line[length];

/** Where lines are asked for; a child that kept it would never hear of its end */
static int ask;

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void write_line(int to, const char *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t wrote = write(to, from + done, bytes - done);
    if (wrote <= 0) err(1, "write");
    done += (size_t)wrote;
  }
}

/** False at its end. */
static int take_line(int from) {
  for (size_t had = 0; had < length;) {
    size_t left = length - had;
    ssize_t more = read(from, line + had, left < room ? left : room);
    if (more <= 0) return 0;
    had += (size_t)more;
  }
  return 1;
}

/** The end of a process that does this until nothing more comes to it; `from` is where that is. */
static int started(void (*does)(int from, int to), int from, int bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) err(1, "socketpair");
  if (bytes > 0) (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  pid_t child = fork();
  if (child < 0) err(1, "fork");
  if (child == 0) {
    close(ends[0]);
    close(ask);
    does(from, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  close(from);
  return ends[0];
}

static void answer(int from, int to) {
  for (char asked; read(from, &asked, 1) == 1;) write_line(to, line, length);
}

static void hold(int from, int to) {
  while (take_line(from)) write_line(to, line, length);
}

static void pass(int from, int to) {
  for (ssize_t had; (had = read(from, line, room)) > 0;) write_line(to, line, (size_t)had);
}

int main(int argc, char **argv) {
  if (argc != 3) errx(7, "usage: long-answer ROUNDS BETWEEN");
  int asking[2];
  long rounds = strtol(argv[1], NULL, 10), between = strtol(argv[2], NULL, 10);
  memset(line, 'x', length);
  if (pipe(asking) != 0) err(1, "pipe");
  ask = asking[1];
  int from = started(answer, asking[0], 0);
  if (between > 0) from = started(hold, from, sent);
  if (between > 1) from = started(pass, from, 0);
  for (long round = -warm; round < rounds; round++) {
    double began = now_us();
    if (write(ask, "?", 1) != 1 || !take_line(from)) err(1, "no answer");
    if (round >= 0) printf("%.2f\n", now_us() - began);
  }
  close(ask);
  while (wait(NULL) > 0);
  return 0;
}
