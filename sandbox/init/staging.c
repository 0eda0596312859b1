// Binds the mount sources, as root, where the dropped uid can reach them: a clone below /root then works.
#include "outer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

// bubblewrap builds the new root on a tmpfs of its own over /tmp, and reads sources through the old root,
// where this one stays.
static const char staging_folder[] = "/tmp";

// The plan resolved every symlink, so a symlink now is a source that was replaced since.
static int open_source(const char *path) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  // Before Linux 5.6: the last component at least. What was mounted, init reports in any case.
  if (fd < 0 && errno == ENOSYS) fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) die("staging", path, errno);
  return (int)fd;
}

static void bind_source(int source, const struct staged *mount_point) {
  char from[64], to[320];
  struct stat status;
  int length = snprintf(to, sizeof to, "%s/%s", staging_folder, mount_point->name);
  if (length < 0 || (size_t)length >= sizeof to) refuse("staging", mount_point->name, "name too long");
  if (fstat(source, &status) != 0) die("staging", mount_point->source, errno);
  if (S_ISLNK(status.st_mode)) die("staging", mount_point->source, ELOOP);
  if (S_ISDIR(status.st_mode)) {
    if (mkdir(to, 0700) != 0) die("staging", to, errno);
  } else {
    int file = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) die("staging", to, errno);
    close(file);
  }
  // Through the descriptor: the path may name something else by now.
  snprintf(from, sizeof from, "/proc/self/fd/%d", source);
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0) die("staging", mount_point->source, errno);
}

void stage_mounts(const struct launch *launch) {
  static int sources[MOUNTS_MAX];
  const struct staged *mounts = launch->mounts;
  const size_t count = launch->mount_count;
  const struct namespace before = mount_namespace();
  // Our own namespace, and nothing propagates: the host never sees these mounts, and they end with us.
  if (unshare(CLONE_NEWNS) != 0) die("staging", "mount namespace", errno);
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) die("staging", "private propagation", errno);
  // All sources are opened before the staging folder covers /tmp, where some of them may lie.
  for (size_t index = 0; index < count; index++) sources[index] = open_source(mounts[index].source);
  if (mount("sallyport", staging_folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=1m") != 0)
    die("staging", staging_folder, errno);
  for (size_t index = 0; index < count; index++) {
    bind_source(sources[index], &mounts[index]);
    close(sources[index]);
  }
  leave_out(before, launch->tool);
}
