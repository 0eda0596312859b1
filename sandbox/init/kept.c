// Runs a program, of which nothing outlives the process that asked for it, be that killed: neither its group of processes nor what left that.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

// What the kernel sends us when whoever started us has ended.
enum { PARENT_GONE = SIGUSR1 };

// How long we go after what left the group, and how long we wait at most for one of it to end.
enum { ALL_END_MS = 5000, ONE_END_MS = 20 };

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

// Returns whether there was a list of them. Nobody else takes up their numbers, since it is we who are told of their ends.
static bool kill_children(void) {
  char list[4096], path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, list, sizeof list - 1);
  close(fd);
  if (got < 0) return false;
  // What does not fit is read the next time, and not by half of its number.
  while (got > 0 && list[got - 1] != ' ') got--;
  list[got] = '\0';
  char *next = list;
  for (long pid; (pid = strtol(next, &next, 10)) > 0;) kill((pid_t)pid, SIGKILL);
  return true;
}

// Whoever loses its parent becomes our child, whatever session it is in: round by round all of them do.
static _Noreturn void end_all(const sigset_t *all) {
  const struct timespec one_end = {.tv_nsec = ONE_END_MS * 1000000L};
  for (int64_t deadline = now_ms() + ALL_END_MS; now_ms() < deadline && kill_children();) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (ended < 0) break;
    sigtimedwait(all, NULL, &one_end);
  }
  // And us. No fork outruns this in the group itself.
  kill(0, SIGKILL);
  _exit(EXIT_SETUP);
}

int kept_main(char **argv) {
  block_all_signals();
  setsid(); // fails for whoever leads a group already: it has what was wanted
  // Armed first and asked for then, so that no end of the parent comes between.
  if (prctl(PR_SET_PDEATHSIG, PARENT_GONE) != 0) die("kept", "the parent's end", errno);
  if (!is_child_of(argv[0])) return EXIT_SETUP;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) die("kept", "orphans", errno);
  pid_t keeper = getpid(), program = fork();
  if (program < 0) die("kept", "fork", errno);
  if (program == 0) become(argv + 1, keeper);
  close_from(STDIN_FILENO); // the end of the program's output is its own
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    int status = 0, number = sigwaitinfo(&all, NULL);
    if (number == PARENT_GONE) end_all(&all);
    if (number == SIGTERM || number == SIGINT || number == SIGHUP) kill(program, number);
    // What outlives the program is then nobody's here, as an agent that it started to stay.
    for (pid_t ended; number == SIGCHLD && (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == program) return end_as(status);
  }
}
