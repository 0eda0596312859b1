// The outer launcher: the steps between the daemon's fork and the sandbox tool that Node can't take.
#include "outer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

static void keep_listed_descriptors(void) {
  close_from(FD_FIRST_UNLISTED);
  // A listed number that is free would be taken by the next open, and the sandbox would get that file.
  for (int fd = 0; fd < FD_FIRST_UNLISTED; fd++)
    if (fcntl(fd, F_GETFD) < 0) die("descriptors", "one of 0 to 6 is not open", errno);
}

// 0 is no signal. It comes when the thread ends that forked us, which is the daemon's first.
static void end_with_the_daemon(int number) {
  if (prctl(PR_SET_PDEATHSIG, number) != 0) die("launcher", "the daemon's end", errno);
}

static void join_cgroups(const struct launch *launch) {
  for (size_t index = 0; index < launch->cgroup_count; index++) {
    const char *file = launch->cgroups[index];
    int fd = open(file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) die("cgroup", file, errno);
    if (write(fd, "0", 1) != 1) die("cgroup", file, errno);
    close(fd);
  }
}

enum { OOM_SCORE = 500 };

// The kernel ends a server before it ends the daemon. Never lowered: a daemon that stands higher keeps it.
static void raise_oom_score(void) {
  static const char path[] = "/proc/self/oom_score_adj";
  char text[16] = "";
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) die("oom score", path, errno);
  if (atoi(text) < OOM_SCORE) {
    int length = snprintf(text, sizeof text, "%d", OOM_SCORE);
    if (pwrite(fd, text, (size_t)length, 0) != length) die("oom score", path, errno);
  }
  close(fd);
}

// The daemon wakes in its turn (see the guard); a server is scheduled as one that nobody put anything around.
static void schedule_as_usual(void) {
  const struct sched_param none = {0};
  if (sched_getscheduler(0) == SCHED_BATCH && sched_setscheduler(0, SCHED_OTHER, &none) != 0)
    die("detach", "sched_setscheduler", errno);
}

static void detach(void) {
  reset_signals();
  schedule_as_usual();
  end_with_the_daemon(0);
  umask(077);
  if (chdir("/") != 0) die("detach", "/", errno);
  // Fails for a process that leads its group already; if it leads its session too, that is what was wanted.
  if (setsid() < 0 && getsid(0) != getpid()) die("detach", "setsid", errno);
}

int outer_main(void) {
  static struct launch launch;

  // 1. Close what was not listed. Before anything else: a descriptor that leaked into the daemon ends here.
  keep_listed_descriptors();

  // 2. Read the orders. Up to the exec frame and not a byte more: the rest of the stream is for init. They may be long in
  // coming, where it was started ahead of them. Until step 7 the daemon's end kills it: stopped, it would not see its
  // channel end. That of a daemon that was gone before this has ended already.
  end_with_the_daemon(SIGKILL);
  let_go_of_code();
  read_launch_orders(&launch);

  // 3. Join the cgroups. With the daemon's rights still, and so early that all that follows is counted.
  join_cgroups(&launch);
  raise_oom_score();

  // 4. Stage the mounts. With the daemon's rights too: the dropped uid could not search every folder above.
  if (launch.mount_count > 0) stage_mounts(&launch);

  // 5. Leave the keyring. It passes through every namespace, and the daemon's keys with it. Before the drop:
  // the new one then counts against the daemon's quota, not against that of a uid with many sandboxes.
  join_new_keyring();

  // 6. Drop the identity. No step below needs a right. bubblewrap run by uid 0 leaves /proc/sys writable,
  // whatever else it is told.
  drop_identity(launch.uid, launch.gid);

  // 7. Detach. What exec would carry over: dispositions, signal mask, the daemon's scheduling, umask, folder, terminal, and
  // the signal at the daemon's end, at which the tool would leave a child that waits for it for ever.
  detach();

  // 8. Start who covers /proc. As nobody by now, and a child of the tool's by then: it ends before anything of the server runs.
  if (launch.cover_count > 0) start_covers(&launch);

  // 9. Execute the tool. With an empty environment and its arguments in memory: others can read /proc.
  execute_tool(&launch);
}
