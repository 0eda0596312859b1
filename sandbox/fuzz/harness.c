// Gives one input to a parser of init's, whole and alone. What the parser asks of the kernel is answered from
// the input.
#include "harness.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../init/egress.h"
#include "../init/init.h"

enum { BLOCKS_MAX = 4096 };

static const struct {
  const char *name;
  void (*run)(void);
  bool is_framed;
} harnesses[] = {
    {"answer", fuzz_answer, false},       {"connects", fuzz_connects, false},
    {"container", fuzz_container, true},  {"gate", fuzz_gate, true},
    {"guard", fuzz_guard, false},         {"orders", fuzz_orders, true},
    {"refusals", fuzz_refusals, false},   {"resolver", fuzz_resolver, false},
    {"supervise", fuzz_supervise, false},
};

struct input input;
int ended_with;
void (*on_written)(int fd, const char *bytes, size_t length);

static void (*chosen)(void);
bool is_framed;
static jmp_buf back;
static bool is_armed;
static void *blocks[BLOCKS_MAX];
static size_t block_count;

void expect(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "finding: %s\n", what);
  abort();
}

bool outlives(void (*parse)(void)) {
  is_armed = true;
  bool is_alive = setjmp(back) == 0;
  if (is_alive) parse();
  is_armed = false;
  return is_alive;
}

void *exact(const void *bytes, size_t length) {
  expect(block_count < BLOCKS_MAX, "more blocks than one input may take");
  void *block = malloc(length == 0 ? 1 : length);
  if (length > 0) memcpy(block, bytes, length);
  return blocks[block_count++] = block;
}

static void expect_line(int fd, const char *bytes, size_t length) {
  (void)fd;
  expect(length > 0 && bytes[length - 1] == '\n', "a line without its end");
  for (size_t at = 0; at + 1 < length; at++)
    expect((unsigned char)bytes[at] >= 0x20 && bytes[at] != 0x7f, "a control character in a line");
}

// The linker gives these to whoever calls what they are named for.
void __real__exit(int status) __attribute__((noreturn));
_Noreturn void __wrap__exit(int status) {
  if (!is_armed) __real__exit(status);
  ended_with = status;
  longjmp(back, 1);
}

static ssize_t give(void *to, size_t length, bool is_look) {
  size_t most = length < input.step ? length : input.step;
  if (most > input.left) most = input.left;
  memcpy(to, input.at, most);
  if (is_look) return (ssize_t)most;
  input.at += most;
  input.left -= most;
  return (ssize_t)most;
}
ssize_t __wrap_recv(int fd, void *to, size_t length, int flags) {
  (void)fd;
  return give(to, length, (flags & MSG_PEEK) != 0);
}
ssize_t __wrap_read(int fd, void *to, size_t length) {
  (void)fd;
  return give(to, length, false);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags) {
  (void)flags;
  on_written(fd, bytes, length);
  return (ssize_t)length;
}
bool __wrap_write_all(int fd, const void *bytes, size_t length) {
  on_written(fd, bytes, length);
  return true;
}

int __wrap_poll(struct pollfd *wait, nfds_t count, int timeout_ms) {
  (void)timeout_ms;
  for (nfds_t index = 0; index < count; index++) wait[index].revents = wait[index].events & POLLIN;
  return 1;
}

int __wrap_kill(pid_t pid, int number) {
  expect(pid > 1, "a signal to a group or to everybody");
  expect(number >= 1 && number <= SIGRTMAX, "a number that is no signal");
  return 0;
}

// Nothing listens, and nobody waits.
bool __wrap_set_listening(struct listener *listener, bool is_open) {
  listener->is_open = is_open;
  return true;
}
void __wrap_watch(int fd, uint32_t events, enum source source, uint32_t index) {
  (void)fd, (void)events, (void)source, (void)index;
}
void __wrap_change_watch(int fd, uint32_t events, enum source source, uint32_t index) {
  (void)fd, (void)events, (void)source, (void)index;
}

// The same whoever runs it.
uid_t __wrap_geteuid(void) { return 0; }

// The arena has room behind every payload; here there is none.
struct frame __real_frame_read(void);
struct frame __wrap_frame_read(void) {
  struct frame frame = __real_frame_read();
  frame.at = exact(frame.at, frame.left);
  return frame;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  const char *dash = strrchr((*argv)[0], '-');
  for (size_t index = 0; index < sizeof harnesses / sizeof harnesses[0]; index++) {
    if (dash == NULL || strcmp(dash + 1, harnesses[index].name) != 0) continue;
    chosen = harnesses[index].run;
    is_framed = harnesses[index].is_framed;
  }
  if (chosen != NULL) return 0;
  fprintf(stderr, "%s: no harness of that name\n", (*argv)[0]);
  exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  input = (struct input){.at = bytes, .left = length, .step = length + 1};
  on_written = expect_line;
  on_death(NULL, false);
  chosen();
  (void)outlives(frames_settle);
  while (block_count > 0) free(blocks[--block_count]);
  arena_wipe();
  return 0;
}
