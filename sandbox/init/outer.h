// What the outer launcher is told to do before it becomes the sandbox tool.
#ifndef SALLYPORT_OUTER_H
#define SALLYPORT_OUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CGROUPS_MAX = 16, MOUNTS_MAX = 512, ARGUMENTS_MAX = 8192, COVERS_MAX = 128 };

struct staged {
  const char *source;
  const char *name;
};

// One argument of the tool: text, or bytes whose descriptor number becomes the text.
struct argument {
  const void *bytes;
  size_t length;
  bool is_data;
};

// An entry of the sandbox's /proc that shows nothing.
struct cover {
  const char *path;
  bool is_folder;
};

struct launch {
  size_t cgroup_count, mount_count, argument_count, cover_count;
  const char *cgroups[CGROUPS_MAX];
  struct staged mounts[MOUNTS_MAX];
  struct argument arguments[ARGUMENTS_MAX];
  struct cover covers[COVERS_MAX];
  const char *tool;
  bool has_ids;
  uid_t uid;
  gid_t gid;
};

// orders.c: the frames up to `exec`, checked for shape and completeness.
void read_launch_orders(struct launch *launch);
// staging.c
void stage_mounts(const struct launch *launch);
// The name of a mount namespace, empty where it is not known.
struct namespace {
  char name[64];
};

// leave-out.c
struct namespace mount_namespace(void);
// Takes what the tool does not need out of our table of mounts; `before` is the namespace that we were born
// in.
void leave_out(struct namespace before, const char *tool);
// identity.c
void join_new_keyring(void);
void drop_identity(uid_t uid, gid_t gid);
// covers.c: starts who makes the covers once PID 1 asks for them, and has PID 1 find him at FD_COVERS.
void start_covers(const struct launch *launch);
// tool.c
_Noreturn void execute_tool(const struct launch *launch);

#endif
