// Walks the instances' cgroups below one folder: counts, signals, removes. Links are never followed.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"

enum { LEVELS_MAX = 8 };

static int open_folder(int parent, const char *name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// One cgroup's own processes, signalled at once: to reuse a pid the kernel hands out all others first.
static size_t signal_members(int cgroup, int number) {
  size_t count = 0;
  int fd = openat(cgroup, "cgroup.procs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *list = fd < 0 ? NULL : fdopen(fd, "r");
  if (list == NULL) return 0;
  for (int pid; fscanf(list, "%d", &pid) == 1;) {
    // 0 is a process of another pid namespace; a negative number or 1 would reach far beyond this cgroup.
    if (pid <= 1) continue;
    count++;
    if (number != 0) kill(pid, number);
  }
  fclose(list);
  return count;
}

struct visit {
  int number;    // signal to send, 0 for none
  bool removes;  // rmdir each folder on the way up
};

// Visits the sub-folders of `folder` (closed here), deepest first; returns the processes met.
static size_t visit_below(int folder, const struct visit *visit, int levels) {
  size_t count = 0;
  DIR *listing = fdopendir(folder);
  if (listing == NULL) return close(folder), 0;
  for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    int child = open_folder(dirfd(listing), entry->d_name);
    if (child < 0) continue;  // a control file
    count += signal_members(child, visit->number);
    if (levels > 0)
      count += visit_below(child, visit, levels - 1);
    else
      close(child);
    if (visit->removes) unlinkat(dirfd(listing), entry->d_name, AT_REMOVEDIR);
  }
  closedir(listing);
  return count;
}

size_t signal_cgroups_below(const char *path, int number) {
  int folder = open_folder(AT_FDCWD, path);
  return folder < 0 ? 0 : visit_below(folder, &(struct visit){.number = number}, LEVELS_MAX);
}

bool remove_cgroups(const char *path) {
  int folder = open_folder(AT_FDCWD, path);
  if (folder < 0) return true;
  visit_below(folder, &(struct visit){.removes = true}, LEVELS_MAX);
  return rmdir(path) == 0;
}
