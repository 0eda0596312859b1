// Reads what the supervisor orders of the outer launcher, and refuses what is malformed, doubled or missing.
#include "frames.h"
#include "init.h"
#include "outer.h"

#include <string.h>
#include <unistd.h>

// `tasks` moves one thread, and there is but one.
static bool is_join_file(const char *path) {
  const char *name = path[0] == '/' ? strrchr(path, '/') : path;
  return name > path && (strcmp(name, "/cgroup.procs") == 0 || strcmp(name, "/tasks") == 0);
}

static void add_cgroup(struct launch *launch, const char *path) {
  if (!is_join_file(path)) refuse("cgroup", path, "not the absolute path of a cgroup.procs or tasks file");
  if (launch->cgroup_count == CGROUPS_MAX) refuse("cgroup", path, "more than 16 cgroups");
  launch->cgroups[launch->cgroup_count++] = path;
}

// One name, so that no staging path can leave the staging folder.
static bool is_plain_name(const char *name) {
  if (name[0] == '\0' || name[0] == '.') return false;
  return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

static void add_mount(struct launch *launch, struct frame *frame) {
  struct staged mount = {.source = take_text(frame), .name = take_text(frame)};
  if (geteuid() != 0) refuse("staging", mount.source, "mounts can be staged by root only");
  if (mount.source[0] != '/') refuse("staging", mount.source, "not an absolute path");
  if (!is_plain_name(mount.name)) refuse("staging", mount.name, "not a plain file name");
  if (launch->mount_count == MOUNTS_MAX) refuse("staging", mount.source, "more than 512 mounts");
  launch->mounts[launch->mount_count++] = mount;
}

static void add_argument(struct launch *launch, struct argument argument) {
  if (launch->argument_count == ARGUMENTS_MAX) refuse("tool", "arguments", "more than 8192 arguments");
  launch->arguments[launch->argument_count++] = argument;
}

// Whatever it is that covers, nothing else is ever lost below it.
static void add_cover(struct launch *launch, struct frame *frame) {
  bool is_folder = take_u32(frame) != 0;
  const char *path = take_text(frame);
  if (strncmp(path, "/proc/", 6) != 0 || path[6] == '\0' || strstr(path, "/.") != NULL)
    refuse("covers", path, "not a path below /proc");
  if (launch->cover_count == COVERS_MAX) refuse("covers", path, "more than 128 covers");
  launch->covers[launch->cover_count++] = (struct cover){.path = path, .is_folder = is_folder};
}

static void set_ids(struct launch *launch, struct frame *frame) {
  if (launch->has_ids) refuse("identity", "ids", "given twice");
  launch->uid = take_u32(frame);
  launch->gid = take_u32(frame);
  launch->has_ids = true;
}

static void set_tool(struct launch *launch, const char *path) {
  if (launch->tool != NULL) refuse("tool", path, "given twice");
  if (path[0] != '/') refuse("tool", path, "not an absolute path");
  launch->tool = path;
}

void read_launch_orders(struct launch *launch) {
  for (;;) {
    struct frame frame = frame_read();
    switch (frame.type) {
      case 'c': add_cgroup(launch, take_text(&frame)); break;
      case 'm': add_mount(launch, &frame); break;
      case 'u': set_ids(launch, &frame); break;
      case 'v': add_cover(launch, &frame); break;
      case 'b': set_tool(launch, take_text(&frame)); break;
      case 'a': {
        const char *text = take_text(&frame);
        add_argument(launch, (struct argument){.bytes = text, .length = strlen(text)});
        break;
      }
      case 'd':
        add_argument(launch, (struct argument){.bytes = frame.at, .length = frame.left, .is_data = true});
        continue;
      case 'x':
        take_end(&frame);
        if (!launch->has_ids) refuse("identity", "ids", "missing before exec");
        if (launch->tool == NULL) refuse("tool", "path", "missing before exec");
        frames_settle();
        return;
      default: frame_out_of_order(&frame);
    }
    take_end(&frame);
  }
}
