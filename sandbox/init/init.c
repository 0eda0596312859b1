// PID 1 of every sandbox: proves that it is the sandbox, waits at the gate, gives up every right, starts the server, and outlives it by nothing.
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "frames.h"
#include "sandbox.h"

// The supervisor hears of a failed step over the channel too, with errno, step and object apart.
static void report_failure(int status, const char *step, const char *object, int error) {
  unsigned char payload[4 + 64 + 512];
  (void)status;
  put_u32(payload, (uint32_t)error);
  size_t step_bytes = strnlen(step, 63), object_bytes = strnlen(object, 511);
  memcpy(payload + 4, step, step_bytes);
  payload[4 + step_bytes] = 0;
  memcpy(payload + 5 + step_bytes, object, object_bytes);
  payload[5 + step_bytes + object_bytes] = 0;
  (void)frame_send('X', payload, 6 + step_bytes + object_bytes);  // the channel's end says it as well
}

static void expect_sandbox(void) {
  if (getpid() != 1) refuse("init", "pid", "not 1: init runs as the first process of a pid namespace only");
  if (getuid() == 0 || geteuid() == 0 || getgid() == 0 || getegid() == 0)
    refuse("init", "uid or gid 0", "a server never runs as root");
}

// What the tool left in our environment (PWD) is wiped, so that nothing has to be said about /proc/1/environ.
static void wipe_environment(void) {
  extern char **environ;
  for (char **variable = environ; *variable != NULL; variable++) explicit_bzero(*variable, strlen(*variable));
  environ[0] = NULL;
}

static int open_signals(void) {
  sigset_t child;
  block_all_signals();
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) die("init", "signalfd", errno);
  return fd;
}

// The supervisor sees the end of the server's output when the server's copies are closed: ours must not hold it open.
static void let_go_of_streams(void) {
  close(FD_SERVER_STDIN);
  close(FD_SERVER_STDOUT);
  close(FD_SERVER_STDERR);
}

int init_main(void) {
  static struct orders orders;
  int failures[2];

  // 1. First of all non-dumpable: from here no process of this uid, inside or outside, reads or traces PID 1.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) die("init", "dumpable", errno);
  expect_sandbox();
  wipe_environment();
  // The tool's status channel ends here, and no descriptor but the listed ones goes on.
  close_from(FD_TOOL_STATUS);
  set_cloexec(FD_CONTROL, FD_SERVER_STDERR);

  // 2. Ready: what really lies at each mount target. The supervisor compares before it says anything that matters.
  read_targets(&orders);
  report_targets(&orders);
  on_death(report_failure, false);

  // 3. The gate. If the supervisor ends before its go, this ends too, and nothing of the server has run.
  read_go(&orders);

  // 4. Files while nobody but us can have put anything in their place.
  write_files(&orders);

  // 5. Kernel counters while CAP_SYS_RESOURCE is there; after step 6 nobody in here can raise them again.
  write_counters(&orders);

  // 6. Before the fork, so that the child has never had a right either.
  drop_all_capabilities();
  expect_no_capabilities();
  forbid_new_privileges();

  // 7. Before the fork, so that no SIGCHLD is missed.
  struct watch watch = {.signals = open_signals(), .eof_ms = orders.eof_ms, .term_ms = orders.term_ms};
  if (pipe2(failures, O_CLOEXEC) != 0) die("init", "pipe", errno);

  // 8. The server.
  watch.server = fork();
  if (watch.server < 0) die("init", "fork", errno);
  if (watch.server == 0) become_server(&orders, failures[1]);

  // 9. PID 1 keeps nothing of the server's: neither its streams nor its environment and files.
  let_go_of_streams();
  close(failures[1]);
  watch.failures = failures[0];
  arena_wipe();

  // 10. Reaps, forwards and reports until the server ends; then this ends, and the kernel ends whatever is left.
  supervise(&watch);
}
