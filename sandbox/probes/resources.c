// Attempts to take more than is there for one: each stops by itself a little above what it was told.
#include "probes.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int stopped_at(long amount, long wanted) {
  int error = errno;
  fprintf(found, "%ld", amount);
  errno = error;
  return amount >= wanted ? 0 : -1;
}

static int open_many(int count, char **arguments) {
  (void)count;
  long wanted = atol(arguments[0]), amount = 0;
  while (amount < wanted && open("/dev/null", O_RDONLY) >= 0) amount++;
  return stopped_at(amount, wanted);
}

static int fork_many(int count, char **arguments) {
  (void)count;
  long wanted = atol(arguments[0]), amount = 0;
  pid_t *pids = calloc((size_t)wanted, sizeof *pids);
  while (pids != NULL && amount < wanted) {
    pid_t pid = fork();
    if (pid < 0) break;
    if (pid == 0)
      for (;;) pause();
    pids[amount++] = pid;
  }
  int error = errno;
  for (long index = 0; index < amount; index++) kill(pids[index], SIGKILL);
  while (wait(NULL) > 0) continue;
  free(pids);
  errno = error;
  return stopped_at(amount, wanted);
}

static void *wait_for_ever(void *nothing) {
  for (;;) pause();
  return nothing;
}

static int thread_many(int count, char **arguments) {
  (void)count;
  long wanted = atol(arguments[0]), amount = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  for (int error = 0; amount < wanted; amount++) {
    pthread_t thread;
    if ((error = pthread_create(&thread, &attributes, wait_for_ever, NULL)) == 0) continue;
    errno = error;
    break;
  }
  return stopped_at(amount, wanted);
}

enum { PAGE_BYTES = 4096 };

// Touches so many bytes of memory, a page at a time, and holds them; `shared` are those of a nameless file, which no rlimit
// of memory counts. One file for each piece, since the limit of a file's size holds for these, too. `advice` is what the kernel is
// told of each piece that was touched: that it may be swapped, or nothing.
static int touch(const char *bytes, int is_shared, int advice) {
  size_t wanted = (size_t)strtoull(bytes, NULL, 10), piece = 4 << 20;
  for (size_t taken = 0; taken < wanted; taken += piece) {
    int flags = MAP_ANONYMOUS | (is_shared ? MAP_SHARED : MAP_PRIVATE);
    char *at = mmap(NULL, piece, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) return -1;
    for (size_t page = 0; page < piece; page += PAGE_BYTES) at[page] = 1;
    madvise(at, piece, advice); // without swap it stays where it is
    alarm(PATIENCE_S); // whoever gets on is not late, however much else the machine does
  }
  struct timespec second = {.tv_sec = 1};
  nanosleep(&second, NULL); // a watchdog looks now and then; a control group would have struck already
  return await_turn();
}
static int touch_memory(int count, char **arguments) { return (void)count, touch(arguments[0], 0, MADV_NORMAL); }
static int touch_shared(int count, char **arguments) { return (void)count, touch(arguments[0], 1, MADV_NORMAL); }
static int touch_swapped(int count, char **arguments) { return (void)count, touch(arguments[0], 0, MADV_PAGEOUT); }

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// spin PROCESSES MS: tells how many processors all of them together had meanwhile, in thousandths.
static int spin(int count, char **arguments) {
  (void)count;
  int64_t from = now_us(), until = from + atoll(arguments[1]) * 1000;
  for (int left = atoi(arguments[0]); left > 0; left--) {
    pid_t pid = fork();
    if (pid < 0) return -1;
    if (pid != 0) continue;
    while (now_us() < until) continue;
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
  struct rusage used;
  if (getrusage(RUSAGE_CHILDREN, &used) != 0) return -1;
  int64_t us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  fprintf(found, "%lld", (long long)(us * 1000 / (now_us() - from)));
  return 0;
}

// flood BYTES: says so much on stderr; EAGAIN where nobody took any of it in a second and until whoever reads the answers had a turn.
static int flood(int count, char **arguments) {
  (void)count;
  static char piece[65536];
  long wanted = atol(arguments[0]), said = 0;
  while (said < wanted) {
    struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&wait, 1, 1000) == 0) {
      if (await_turn() != 0) return -1;
      if (poll(&wait, 1, 0) == 0) return errno = EAGAIN, stopped_at(said, wanted);
    }
    ssize_t wrote = send(STDERR_FILENO, piece, sizeof piece, MSG_DONTWAIT | MSG_NOSIGNAL);
    // A pipe that poll says has room has room for this much.
    if (wrote < 0 && errno == ENOTSOCK) wrote = write(STDERR_FILENO, piece, PIPE_BUF);
    if (wrote < 0 && errno != EAGAIN) return -1;
    if (wrote > 0) said += wrote;
  }
  return stopped_at(said, wanted);
}

const struct attempt resource_attempts[] = {
    {"spin", 2, spin},                 {"flood", 1, flood},
    {"open-many", 1, open_many},       {"fork-many", 1, fork_many},       {"thread-many", 1, thread_many},
    {"touch-memory", 1, touch_memory}, {"touch-shared", 1, touch_shared}, {"touch-swapped", 1, touch_swapped},
    {NULL, 0, NULL},
};
