// The gate: reports what was mounted, then takes what the server will be, and lets nothing run until go.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "frames.h"
#include "init.h"
#include "sandbox.h"

static const char *take_absolute_path(struct frame *frame) {
  const char *path = take_text(frame);
  if (path[0] != '/') refuse("gate", path, "not an absolute path");
  return path;
}

static void expect_room(size_t count, size_t most, const char *what) {
  if (count >= most) refuse("gate", what, "more than this version holds");
}

void read_targets(struct orders *orders) {
  for (;;) {
    struct frame frame = frame_read();
    switch (frame.type) {
      case 't':
        expect_room(orders->target_count, TARGETS_MAX, "targets");
        orders->targets[orders->target_count++] = take_absolute_path(&frame);
        break;
      case 'C':
        if (orders->is_covered) refuse("gate", "covers", "given twice");
        orders->is_covered = true;
        break;
      case 'D': take_door(&orders->egress, &frame); break;
      case 'W': take_watched(&orders->egress, &frame); break;
      case 'N': take_grant(&orders->egress, &frame); break;
      case 'r':
        take_end(&frame);
        expect_whole_egress(&orders->egress);
        frames_settle();
        return;
      default: frame_out_of_order(&frame);
    }
    take_end(&frame);
  }
}

void report_targets(const struct orders *orders) {
  enum { ENTRY_BYTES = 20 };
  static unsigned char entries[TARGETS_MAX * ENTRY_BYTES];
  for (size_t index = 0; index < orders->target_count; index++) {
    unsigned char *entry = entries + index * ENTRY_BYTES;
    struct stat status;
    // Never through a last symlink: the expected inode could then be reached over a path that can change.
    if (fstatat(AT_FDCWD, orders->targets[index], &status, AT_SYMLINK_NOFOLLOW) == 0) {
      put_u64(entry, status.st_dev);
      put_u64(entry + 8, status.st_ino);
    } else {
      put_u32(entry + 16, (uint32_t)errno);
    }
  }
  if (!frame_send('R', entries, orders->target_count * ENTRY_BYTES)) die("control channel", "ready", errno);
}

static void add_string(char **list, size_t *count, struct frame *frame) {
  expect_room(*count, STRINGS_MAX, "arguments or variables");
  // exec wants pointers to non-const; it copies them and writes to none.
  list[(*count)++] = (char *)take_text(frame);
}

static void add_variable(struct orders *orders, struct frame *frame) {
  add_string(orders->env, &orders->env_count, frame);
  const char *variable = orders->env[orders->env_count - 1];
  const char *equals = strchr(variable, '=');
  if (equals == NULL || equals == variable) refuse("gate", "environment", "a variable without NAME=");
}

static void add_file(struct orders *orders, struct frame *frame) {
  expect_room(orders->file_count, FILES_MAX, "files");
  struct file *file = &orders->files[orders->file_count++];
  file->mode = take_u32(frame);
  file->path = take_absolute_path(frame);
  file->bytes = frame->at;
  file->length = frame->left;
  if ((file->mode & ~0777U) != 0) refuse("gate", file->path, "mode beyond 0777");
}

static void add_limit(struct orders *orders, struct frame *frame) {
  expect_room(orders->limit_count, LIMITS_MAX, "limits");
  struct limit *limit = &orders->limits[orders->limit_count++];
  limit->resource = take_u32(frame);
  limit->soft = take_u64(frame);
  limit->hard = take_u64(frame);
}

static void add_counter(struct orders *orders, struct frame *frame) {
  expect_room(orders->counter_count, COUNTERS_MAX, "counters");
  struct counter *counter = &orders->counters[orders->counter_count++];
  counter->name = take_text(frame);
  counter->value = take_u64(frame);
  if (counter->name[0] == '\0' || strpbrk(counter->name, "/.") != NULL)
    refuse("gate", counter->name, "not the name of a counter");
}

enum { OPTION_ONE_EXEC = 1 };

static void set_options(struct orders *orders, struct frame *frame) {
  uint32_t flags = take_u32(frame);
  if ((flags & ~(uint32_t)OPTION_ONE_EXEC) != 0)
    refuse("gate", "options", "a flag that this version can't enforce");
  if (orders->has_options) refuse("gate", "options", "given twice");
  orders->has_options = true;
  orders->is_one_exec = (flags & OPTION_ONE_EXEC) != 0;
  orders->eof_ms = take_u32(frame);
  orders->term_ms = take_u32(frame);
}

static void expect_complete(const struct orders *orders) {
  if (orders->argv_count == 0) refuse("gate", "argv", "missing before go");
  if (orders->cwd == NULL) refuse("gate", "cwd", "missing before go");
  if (!orders->has_options) refuse("gate", "options", "missing before go");
}

void read_go(struct orders *orders) {
  for (;;) {
    struct frame frame = frame_read();
    switch (frame.type) {
      case 'g': add_string(orders->argv, &orders->argv_count, &frame); break;
      case 'e': add_variable(orders, &frame); break;
      case 'f': add_file(orders, &frame); continue;
      case 'l': add_limit(orders, &frame); break;
      case 'n': add_counter(orders, &frame); break;
      case 'w':
        if (orders->cwd != NULL) refuse("gate", "cwd", "given twice");
        orders->cwd = take_absolute_path(&frame);
        break;
      case 'o': set_options(orders, &frame); break;
      case 'G':
        orders->program = take_absolute_path(&frame);
        take_end(&frame);
        expect_complete(orders);
        frames_settle();
        return;
      default: frame_out_of_order(&frame);
    }
    take_end(&frame);
  }
}
