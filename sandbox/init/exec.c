// The child's last metres, from the fork of PID 1 to the server's program.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"
#include "sandbox.h"

enum { FD_FAILURES = 3 };

// stderr is the server's by now, so a failure goes to PID 1, which tells the supervisor.
static void tell_init(int status, const char *step, const char *object, int error) {
  struct failure failure = {.status = (uint32_t)status, .error = (uint32_t)error};
  strncpy(failure.step, step, sizeof failure.step - 1);
  strncpy(failure.object, object, sizeof failure.object - 1);
  write_all(FD_FAILURES, &failure, sizeof failure);
}

static void take_streams(int failures) {
  if (dup2(FD_SERVER_STDIN, STDIN_FILENO) < 0 || dup2(FD_SERVER_STDOUT, STDOUT_FILENO) < 0 ||
      dup2(FD_SERVER_STDERR, STDERR_FILENO) < 0)
    die("exec", "standard streams", errno);
  // Over the control channel: the child has no business with it from here.
  if (dup3(failures, FD_FAILURES, O_CLOEXEC) < 0) die("exec", "failure pipe", errno);
}

void become_server(const struct orders *orders, int failures) {
  // 1. Take the streams. First, so that every failure below has its way to PID 1; nothing else stays open.
  take_streams(failures);
  on_death(tell_init, true);
  close_from(FD_FAILURES + 1);

  // 2. Start a session. No controlling terminal, and job control reaches the server's processes only.
  if (setsid() < 0) die("exec", "setsid", errno);

  // 3. Enter the folder. Without capabilities by now, so that only one that the server may enter works.
  if (chdir(orders->cwd) != 0) die("cwd", orders->cwd, errno);

  // 4. Set the umask. The usual one: what the server writes in a granted folder is its user's.
  umask(022);

  // 5. Set the limits. Late: they are for the server, and a small one could fail the steps above.
  set_limits(orders);

  // 6. Prove that nothing is left. As near to exec as can be: no capability, and none to be had from a file.
  expect_no_capabilities();
  forbid_new_privileges();

  // 7. Reset the signals. PID 1 blocked all before the fork; the server starts with none blocked or ignored.
  reset_signals();

  // 8. Execute the program. The failure pipe closes with it, which tells PID 1 that it runs.
  if (orders->is_one_exec)
    exec_once(orders->program, orders->argv, orders->env);
  else
    execve(orders->program, orders->argv, orders->env);
  die_as(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "exec", orders->program, errno);
}
