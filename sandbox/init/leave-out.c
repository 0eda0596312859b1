// Fewer mounts for the sandbox tool: bubblewrap reads the whole table for each one that it makes.
#include "outer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "init.h"

enum { TABLE_BYTES = 64 << 10 };

// Neither the tool nor its libraries lie there, and it makes no sandbox of what does: a source is bound by
// now.
static const char *const folders[] = {"/sys",     "/run",        "/boot",         "/dev/pts",
                                      "/dev/shm", "/dev/mqueue", "/dev/hugepages"};

static bool is_within(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool is_left_out(const char *point, const char *tool) {
  for (size_t index = 0; index < sizeof folders / sizeof folders[0]; index++)
    if (strcmp(point, folders[index]) == 0) return !is_within(tool, folders[index]);
  return false;
}

// False where there is none, or it is longer than that.
static bool read_table(char table[TABLE_BYTES]) {
  size_t held = 0;
  ssize_t got = -1;
  int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  while (held < TABLE_BYTES && (got = read(fd, table + held, TABLE_BYTES - held)) > 0) held += (size_t)got;
  close(fd);
  if (got != 0 || held == TABLE_BYTES) return false;
  table[held] = '\0';
  return true;
}

struct namespace mount_namespace(void) {
  struct namespace found = {""};
  if (readlink("/proc/self/ns/mnt", found.name, sizeof found.name - 1) < 0) found.name[0] = '\0';
  return found;
}

// Only where they are ours alone: not those of the namespace that we came from, and none that is shared with
// another.
void leave_out(struct namespace before, const char *tool) {
  static char table[TABLE_BYTES];
  struct namespace own = mount_namespace();
  if (before.name[0] == '\0' || own.name[0] == '\0' || strcmp(before.name, own.name) == 0) return;
  if (!read_table(table) || strstr(table, " shared:") != NULL) return;
  for (char *line = table, *rest; *line != '\0'; line = rest) {
    char point[256];
    rest = line + strcspn(line, "\n");
    if (*rest == '\n') *rest++ = '\0';
    // What can't be taken away, as in a container that made it part of itself, stays.
    if (sscanf(line, "%*s %*s %*s %*s %255s", point) == 1 && is_left_out(point, tool))
      (void)umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW);
  }
}
