// sallyport-observe PID: watches what is started by PID 1 of a sandbox, from outside, and tells of it a line at a time.
//
//   stdout     ready                                        the sandbox is watched; nothing of the server has run
//              read|look|change|execute PROCESS ERRNO PATH REAL KIND
//              dial|socket PROCESS ERRNO ADDRESS PORT       started PROCESS PATH
//              call NUMBER COUNT REFUSED, descriptors COUNT, peaks THREADS MEMORY SCRATCH: once, when all have ended
//
// It must be run by the user who owns the sandbox's user namespace. Everything that it watches dies with it: nothing runs
// unseen. What it tells is what it saw: a thread may change a path between our look and the kernel's.
#include "observe.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { SAMPLE_US = 50000 };

static const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                            PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;

static volatile sig_atomic_t is_due;

static void note_time(int signal) {
  (void)signal;
  is_due = 1;
}

static pid_t process_of(pid_t tid) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", tid);
  FILE *status = fopen(path, "re");
  pid_t process = tid;
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "Tgid:", 5) == 0) process = (pid_t)strtol(line + 5, NULL, 10);
  if (status != NULL) fclose(status);
  return process;
}

static void at_call(struct watched *it) {
  struct __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, it->tid, sizeof info, &info) <= 0) return;
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    it->number = info.entry.nr;
    memcpy(it->arguments, info.entry.args, sizeof it->arguments);
    it->is_inside = true;
    call_begins(it);
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && it->is_inside) {
    it->is_inside = false;
    call_ends(it, info.exit.rval);
  }
}

// The program that took the place of another: every other thread of the process is gone, and this one has the process's id.
static void at_exec(struct watched *it, pid_t tid) {
  unsigned long former = 0;
  if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &former) == 0 && (pid_t)former != tid) watched_forget((pid_t)former);
  it->process = tid;
  it->is_server = true;
  char program[PATH_BYTES];
  if (!link_of(program, "/proc/%d/exe", tid, 0)) return;
  tell_begin("started");
  tell_number(tid);
  tell_text(program);
  tell_end();
}

// Whoever was made begins with a stop of its own, perhaps before its maker has told of it.
static void at_birth(const struct watched *maker) {
  unsigned long made = 0;
  if (ptrace(PTRACE_GETEVENTMSG, maker->tid, 0, &made) != 0) return;
  struct watched *known = watched_find((pid_t)made);
  if (known == NULL)
    watched_add((pid_t)made, process_of((pid_t)made), maker->is_server);
  else
    known->is_server = known->is_server || maker->is_server;
}

static void at_stop(pid_t tid, int status, pid_t init) {
  struct watched *it = watched_find(tid);
  if (it == NULL) it = watched_add(tid, process_of(tid), false);
  if (it == NULL) exit(1);  // what can't be watched does not run
  int signal = WSTOPSIG(status), event = status >> 16;
  // Init is let run: it is Sallyport's own, and only what it starts is of interest.
  enum __ptrace_request go = tid == init ? PTRACE_CONT : PTRACE_SYSCALL;
  if (signal == (SIGTRAP | 0x80)) {
    if (it->is_server) at_call(it);
    signal = 0;
  } else if (event == PTRACE_EVENT_STOP) {
    if (signal != SIGTRAP) go = PTRACE_LISTEN;
    signal = 0;
  } else if (event != 0) {
    if (event == PTRACE_EVENT_EXEC)
      at_exec(it, tid);
    else if (event == PTRACE_EVENT_EXIT)
      watched_sample(init);
    else
      at_birth(it);
    signal = 0;
  }
  ptrace(go, tid, 0, signal);
}

int main(int argc, char **argv) {
  pid_t init = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
  if (init <= 1) {
    fputs("usage: sallyport-observe PID\n", stderr);
    return 2;
  }
  static char buffer[1 << 16];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  if (ptrace(PTRACE_SEIZE, init, 0, options) != 0) {
    fprintf(stderr, "ptrace: %s\n", strerror(errno));
    return 1;
  }
  watched_add(init, init, false);
  puts("ready");
  fflush(stdout);
  struct sigaction action = {.sa_handler = note_time};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval every = {.it_interval.tv_usec = SAMPLE_US, .it_value.tv_usec = SAMPLE_US};
  setitimer(ITIMER_REAL, &every, NULL);
  for (;;) {
    int status = 0;
    pid_t tid = waitpid(-1, &status, __WALL);
    // Before the sample, which sets errno where a process ends under it: who took that for the end would end all that is watched.
    bool is_over = tid < 0 && errno != EINTR;
    if (is_due) {
      is_due = 0;
      watched_sample(init);
      fflush(stdout);
    }
    if (is_over) break;
    if (tid < 0) continue;
    if (WIFSTOPPED(status))
      at_stop(tid, status, init);
    else
      watched_forget(tid);
  }
  calls_summary();
  watched_peaks();
  return fflush(stdout) == 0 ? 0 : 1;
}
