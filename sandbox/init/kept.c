// Runs a program in a group of processes of its own, of which nothing outlives the process that asked for it, be that killed.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"

// What the kernel sends us when whoever started us has ended.
enum { PARENT_GONE = SIGUSR1 };

static bool is_child_of(const char *pid) {
  char parent[16];
  snprintf(parent, sizeof parent, "%d", getppid());
  return strcmp(pid, parent) == 0;
}

_Noreturn static void become(char **argv, pid_t keeper) {
  // Of a keeper that ended before, the kernel tells nobody.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) die("kept", "the keeper's end", errno);
  if (getppid() != keeper) _exit(EXIT_SETUP);
  close_from(STDERR_FILENO + 1);
  reset_signals();
  execvp(argv[0], argv);
  die_as(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "exec", argv[0], errno);
}

// Ends as the program did, so that whoever started us reads it as the program's own end.
static int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  reset_signals();
  raise(WTERMSIG(status));
  return EXIT_SIGNAL + WTERMSIG(status);
}

int kept_main(char **argv) {
  block_all_signals();
  setsid(); // fails for whoever leads a group already: it has what was wanted
  // Armed first and asked for then, so that no end of the parent comes between.
  if (prctl(PR_SET_PDEATHSIG, PARENT_GONE) != 0) die("kept", "the parent's end", errno);
  if (!is_child_of(argv[0])) return EXIT_SETUP;
  pid_t keeper = getpid(), program = fork();
  if (program < 0) die("kept", "fork", errno);
  if (program == 0) become(argv + 1, keeper);
  close_from(STDIN_FILENO); // the end of the program's output is its own
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    int status = 0, number = sigwaitinfo(&all, NULL);
    if (number == PARENT_GONE) kill(0, SIGKILL); // and us
    if (number == SIGTERM || number == SIGINT || number == SIGHUP) kill(program, number);
    if (number == SIGCHLD && waitpid(program, &status, WNOHANG) == program) return end_as(status);
  }
}
