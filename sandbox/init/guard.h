// What the guard was told to clean up, and the act.
#ifndef SALLYPORT_GUARD_H
#define SALLYPORT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

// The process that started the guard; `deadline` is 0 until it says that it ends.
struct daemon {
  pid_t pid;
  int fd;
  int64_t deadline;
};

// daemon-end.c: a descriptor of the parent, -1 where there can be none.
struct daemon hold_daemon(void);
// Has the kernel take nobody's processor away for the daemon (SCHED_BATCH), whose thread then finds many lines at once instead
// of one; where a processor is free it wakes as before. Before a word was said; one with a policy of its own keeps it, and
// where the kernel refuses, the daemon is dearer and no less safe.
void wake_in_turn(const struct daemon *daemon);
// Has the kernel write no file of the daemon's memory where it dies of a fault: secrets of calls may be in it.
void leave_no_core(const struct daemon *daemon);
// From now on the daemon has seconds to end; NULL when that is noted, else the reason why not.
const char *note_end(struct daemon *daemon, const char *pid);
// False when the daemon is overdue and has written nothing to `fd`.
bool speaks_in_time(const struct daemon *daemon, int fd);
// Returns when a daemon that said that it ends has ended; kills one that is overdue.
void see_off(const struct daemon *daemon);

// entries.c: NULL when the line is taken, else the reason why not.
const char *add_entry(struct entries *entries, const char *line);
// cgroups.c: processes in the cgroups below `path`; with `number`, each gets that signal.
size_t signal_cgroups_below(const char *path, int number);
// Removes the empty cgroups below `path`, then `path` itself if nothing is in it; true when it is gone.
bool remove_cgroups(const char *path);
// doors.c: removes `path`/<any>/door, each folder that held one, and `path`.
void remove_doors(const char *path);

#endif
