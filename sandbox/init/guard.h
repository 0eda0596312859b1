// What the guard was told to clean up, and the act.
#ifndef SALLYPORT_GUARD_H
#define SALLYPORT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

enum { ENTRIES_MAX = 256, PATH_BYTES = 4096 };

enum kind { CGROUP, FILE_TO_UNLINK, FOLDER_TO_REMOVE, DOORS };

struct entry {
  enum kind kind;
  char path[PATH_BYTES];
};

struct entries {
  size_t count;
  struct entry list[ENTRIES_MAX];
};

// entries.c: NULL when the line is taken, else the reason why not.
const char *add_entry(struct entries *entries, const char *line);
// cgroups.c: processes in the cgroups below `path`; with `number`, each gets that signal.
size_t signal_cgroups_below(const char *path, int number);
// Removes the empty cgroups below `path`, then `path` itself if nothing is in it; true when it is gone.
bool remove_cgroups(const char *path);
// doors.c: removes `path`/<any>/door, each folder that held one, and `path`.
void remove_doors(const char *path);

#endif
