// Descriptor hygiene: what was not listed does not cross, and nothing of ours outlives an exec by accident.
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// Kernels before 5.9: the list of open descriptors is read in rounds, since closing changes it.
static void close_listed_from(int first) {
  struct entry {
    uint64_t ino;
    int64_t off;
    unsigned short length;
    unsigned char type;
    char name[];
  };
  _Alignas(struct entry) char list[4096];
  int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) die("descriptors", "/proc/self/fd", errno);
  for (bool closed = true; closed;) {
    closed = false;
    if (lseek(folder, 0, SEEK_SET) < 0) die("descriptors", "/proc/self/fd", errno);
    for (;;) {
      long bytes = syscall(SYS_getdents64, folder, list, sizeof list);
      if (bytes < 0) die("descriptors", "/proc/self/fd", errno);
      if (bytes == 0) break;
      for (long at = 0; at < bytes;) {
        const struct entry *entry = (const struct entry *)(const void *)(list + at);
        int fd = atoi(entry->name);
        if (fd >= first && fd != folder && close(fd) == 0) closed = true;
        at += entry->length;
      }
    }
  }
  close(folder);
}

// Closes every descriptor from `first` on, or dies.
void close_from(int first) {
  if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0) return;
  if (errno != ENOSYS && errno != EINVAL) die("descriptors", "close_range", errno);
  close_listed_from(first);
}

// Marks open descriptors close-on-exec; dies where one of them is not open.
void set_cloexec(int first, int last) {
  for (int fd = first; fd <= last; fd++)
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) die("descriptors", "listed descriptor is not open", errno);
}

bool write_all(int fd, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length > 0) {
    ssize_t written = write(fd, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    length -= (size_t)written;
  }
  return true;
}
