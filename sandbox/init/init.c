// PID 1 of every sandbox: waits at the gate, gives up every right, starts the server, outlives it by nothing.
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

// What is queued for a process counts against its own limit, whoever sent it: with none left here, a server can't use
// PID 1 to hold more than its share of a number that its user has on the whole machine. A SIGCHLD needs no place.
static void queue_no_signals(void) {
  struct rlimit queue;
  if (getrlimit(RLIMIT_SIGPENDING, &queue) != 0) die("init", "pending signals", errno);
  queue.rlim_cur = 0;  // the hard limit stays, for the child to set its own
  // gVisor's can't be set, and no other sandbox's signals count there.
  if (setrlimit(RLIMIT_SIGPENDING, &queue) != 0 && errno != EPERM) die("init", "pending signals", errno);
}

static int open_signals(void) {
  sigset_t child;
  block_all_signals();
  queue_no_signals();
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) die("init", "signalfd", errno);
  return fd;
}

// Ours would hold the server's output open, and the supervisor would not see its end.
static void let_go_of_streams(void) {
  close(FD_SERVER_STDIN);
  close(FD_SERVER_STDOUT);
  close(FD_SERVER_STDERR);
}

int init_main(void) {
  static struct orders orders;
  int failures[2];

  // 1. Close itself off. First of all non-dumpable: from here no process of this uid reads or traces PID 1.
  // Only listed descriptors go on.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) die("init", "dumpable", errno);
  expect_sandbox();
  wipe_environment();
  close_from(FD_COVERS + 1);
  set_cloexec(FD_CONTROL, FD_SERVER_STDERR);

  // 2. Have /proc covered. By the launcher's child, from outside; while nobody else is here to have read it.
  read_targets(&orders);
  if (orders.is_covered) have_covered();
  close(FD_COVERS);

  // 3. Open the way out. Where the network is an allowlist: while the capabilities for it are there, and before
  // anything is known that the relay should not know.
  pid_t relay = orders.egress.door == NULL ? 0 : start_egress(&orders.egress);

  // 4. Report ready. With what lies at each mount target; the supervisor compares before it says more.
  report_targets(&orders);
  on_death(report_failure, false);

  // 5. Wait at the gate. If the supervisor ends before its go, this ends, and nothing of the server ran.
  read_go(&orders);

  // 6. Write the files. While nobody but us can have put anything in their place.
  write_files(&orders);

  // 7. Set the counters. While CAP_SYS_RESOURCE is there; after the next step nobody in here can raise them.
  write_counters(&orders);

  // 8. Drop every capability. Before the fork, so that the child has never had one either.
  drop_all_capabilities();
  expect_no_capabilities();
  forbid_new_privileges();

  // 9. Listen for signals. Before the fork, so that no SIGCHLD is missed. And to the watched filter, while there is nobody
  // who could leave no room for a thread.
  struct watch watch = {.relay = relay,
                        .failures = -1,
                        .signals = open_signals(),
                        .eof_ms = orders.eof_ms,
                        .term_ms = orders.term_ms};
  expect_relay(&watch);
  answer_watched();
  if (pipe2(failures, O_CLOEXEC) != 0) die("init", "pipe", errno);

  // 10. Fork the server. All that it becomes is in exec.c.
  watch.server = fork();
  if (watch.server < 0) die("init", "fork", errno);
  if (watch.server == 0) become_server(&orders, failures[1]);

  // 11. Let go of what is the server's. Its streams, and the memory that held its environment and files.
  let_go_of_streams();
  close(failures[1]);
  watch.failures = failures[0];
  arena_wipe();
  let_go_of_code();

  // 12. Supervise. Until the server ends: then this ends, and the kernel ends whatever is left.
  supervise(&watch);
}
