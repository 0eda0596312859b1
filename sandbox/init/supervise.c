// PID 1 after the start: reaps, passes signals on, reports the end, and runs the stop ladder when left alone.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"
#include "init.h"
#include "sandbox.h"

// The ladder for a lost channel. The server's stdin ended with the supervisor, so waiting is the first rung.
enum rung { CHANNEL_UP, WAIT_FOR_EOF, WAIT_FOR_TERM };

static enum rung rung = CHANNEL_UP;
static int64_t rung_ends_ms;

static void lose_channel(const struct watch *watch) {
  if (rung != CHANNEL_UP) return;
  rung = WAIT_FOR_EOF;
  rung_ends_ms = now_ms() + watch->eof_ms;
}

static void report(const struct watch *watch, char type, const void *payload, size_t length) {
  // A full channel is a supervisor that does not read: to wait for it would stop the reaping and the ladder.
  if (rung == CHANNEL_UP && !frame_send(type, payload, length)) lose_channel(watch);
}

// A stopped process takes SIGTERM only once it is continued.
static void terminate(const struct watch *watch) {
  kill(watch->server, SIGTERM);
  kill(watch->server, SIGCONT);
}

static void climb(const struct watch *watch) {
  if (rung == CHANNEL_UP || now_ms() < rung_ends_ms) return;
  if (rung == WAIT_FOR_TERM) _exit(EXIT_SIGNAL + SIGKILL);  // and the kernel kills the whole namespace
  rung = WAIT_FOR_TERM;
  rung_ends_ms = now_ms() + watch->term_ms;
  terminate(watch);
}

static int poll_timeout_ms(void) {
  if (rung == CHANNEL_UP) return -1;
  int64_t left = rung_ends_ms - now_ms();
  return left < 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

// The failure pipe either closed with the exec, or says why there was none.
static void learn_start(struct watch *watch) {
  struct failure failure;
  ssize_t bytes = read(watch->failures, &failure, sizeof failure);
  if (bytes < 0 && errno == EINTR) return;
  close(watch->failures);
  watch->failures = -1;
  if (bytes == 0) {
    unsigned char pid[4];
    put_u32(pid, (uint32_t)watch->server);
    // The launcher's diagnostics end here.
    dup2(STDIN_FILENO, STDERR_FILENO);
    report(watch, 'S', pid, sizeof pid);
    return;
  }
  if (bytes != (ssize_t)sizeof failure) refuse("exec", "failure pipe", "a torn message");
  failure.step[sizeof failure.step - 1] = failure.object[sizeof failure.object - 1] = '\0';
  die_as((int)failure.status, failure.step, failure.object, (int)failure.error);
}

static void put_us(unsigned char *at, struct timeval time) {
  put_u64(at, (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec);
}

static _Noreturn void end(struct watch *watch, int status, const struct rusage *usage) {
  if (watch->failures >= 0) learn_start(watch);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  unsigned char payload[32];
  put_u32(payload, (uint32_t)code);
  put_u32(payload + 4, (uint32_t)number);
  put_us(payload + 8, usage->ru_utime);
  put_us(payload + 16, usage->ru_stime);
  put_u64(payload + 24, (uint64_t)usage->ru_maxrss * 1024);
  report(watch, 'E', payload, sizeof payload);
  // What the server left behind ends with PID 1: daemons, sessions, stopped processes, all of it.
  _exit(number == 0 ? code : EXIT_SIGNAL + number);
}

// A server whose network is not what it was started with does not go on, whoever ended the relay. Nor whoever stopped it:
// nobody would see then what is refused.
static _Noreturn void lose_relay(struct watch *watch, int status) {
  char how[64];
  if (watch->failures >= 0) learn_start(watch);
  if (WIFSIGNALED(status))
    snprintf(how, sizeof how, "the relay was killed by signal %d", WTERMSIG(status));
  else if (WIFSTOPPED(status))
    snprintf(how, sizeof how, "the relay was stopped by signal %d", WSTOPSIG(status));
  else
    snprintf(how, sizeof how, "the relay ended with status %d", WEXITSTATUS(status));
  die("egress", how, ECHILD);
}

void expect_relay(struct watch *watch) {
  int status;
  if (watch->relay != 0 && waitpid(watch->relay, &status, WNOHANG | WUNTRACED) == watch->relay)
    lose_relay(watch, status);
}

enum { REAP_ROUND = 256 };

// True when there may be more: a storm of orphans must not keep the channel from being read.
static bool reap(struct watch *watch) {
  expect_relay(watch);
  for (int count = 0; count < REAP_ROUND; count++) {
    int status;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return false;
    if (pid == watch->server) end(watch, status, &usage);
    if (pid == watch->relay) lose_relay(watch, status);
  }
  return true;
}

static void forward(const struct watch *watch, uint32_t number) {
  if (number < 1 || number > (uint32_t)SIGRTMAX) refuse("control channel", "s", "not a signal");
  kill(watch->server, (int)number);
}

// Bytes of a frame that is not whole yet. After go every frame is short, and none is waited for.
static unsigned char held[FRAME_HEAD_BYTES + 4];
static size_t held_bytes;

static void obey(const struct watch *watch) {
  for (;;) {
    uint32_t wanted = held_bytes < FRAME_HEAD_BYTES ? 0 : get_u32(held + 1);
    if (wanted > 4) refuse("control channel", "frame", "too long after go");
    size_t whole = FRAME_HEAD_BYTES + wanted;
    if (held_bytes < whole) {
      ssize_t got = recv(FD_CONTROL, held + held_bytes, whole - held_bytes, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        lose_channel(watch);
        return;
      }
      held_bytes += (size_t)got;
      continue;
    }
    held_bytes = 0;
    if (held[0] == 'K' && wanted == 0) _exit(EXIT_SIGNAL + SIGKILL);
    if (held[0] == 'T' && wanted == 0)
      terminate(watch);
    else if (held[0] == 's' && wanted == 4)
      forward(watch, get_u32(held + FRAME_HEAD_BYTES));
    else
      refuse("control channel", (char[]){(char)held[0], 0}, "frame unknown or out of order");
  }
}

static void drain_signals(const struct watch *watch) {
  struct signalfd_siginfo information[8];
  while (read(watch->signals, information, sizeof information) > 0) continue;
}

void supervise(struct watch *watch) {
  for (bool more = false;;) {
    struct pollfd wait[] = {
        {.fd = rung == CHANNEL_UP ? FD_CONTROL : -1, .events = POLLIN},
        {.fd = watch->signals, .events = POLLIN},
        {.fd = watch->failures, .events = POLLIN},
    };
    poll(wait, 3, more ? 0 : poll_timeout_ms());
    // Start before end, end before orders: what the supervisor hears is in the order in which it happened.
    if (watch->failures >= 0 && wait[2].revents != 0) learn_start(watch);
    drain_signals(watch);
    more = reap(watch);
    if (wait[0].revents != 0) obey(watch);
    climb(watch);
  }
}
