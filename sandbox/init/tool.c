// Becomes the sandbox tool, with its arguments and data in sealed memory: everybody can read a command line.
#include "init.h"
#include "outer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

// Crosses exec on purpose: the tool reads it and closes it.
static int open_memory_file(void) {
  int fd = memfd_create("sallyport", MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("sallyport", MFD_ALLOW_SEALING);  // before Linux 6.3
  if (fd < 0) die("tool", "memfd_create", errno);
  return fd;
}

static void seal(int fd) {
  if (lseek(fd, 0, SEEK_SET) != 0) die("tool", "memory file", errno);
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    die("tool", "memory file seals", errno);
}

static void append(int fd, const void *bytes, size_t length) {
  if (!write_all(fd, bytes, length)) die("tool", "memory file", errno);
}

// A few long writes for hundreds of short texts.
static unsigned char gathered[4096];
static size_t gathered_bytes;

static void pour(int fd) {
  append(fd, gathered, gathered_bytes);
  gathered_bytes = 0;
}

static void gather(int fd, const void *bytes, size_t length) {
  if (length > sizeof gathered - gathered_bytes) pour(fd);
  if (length > sizeof gathered) {
    append(fd, bytes, length);
    return;
  }
  memcpy(gathered + gathered_bytes, bytes, length);
  gathered_bytes += length;
}

// Each argument with its NUL, as `bwrap --args` takes them; data become the number of a descriptor.
static int write_arguments(const struct launch *launch) {
  int list = open_memory_file();
  for (size_t index = 0; index < launch->argument_count; index++) {
    const struct argument *argument = &launch->arguments[index];
    if (argument->is_data) {
      char number[16];
      int data = open_memory_file();
      append(data, argument->bytes, argument->length);
      seal(data);
      gather(list, number, (size_t)snprintf(number, sizeof number, "%d", data) + 1);
    } else {
      gather(list, argument->bytes, argument->length + 1);
    }
  }
  pour(list);
  seal(list);
  return list;
}

// A setuid bubblewrap is another program: it builds the sandbox as root.
static void expect_unprivileged(const char *tool) {
  struct stat status;
  if (stat(tool, &status) != 0) die("tool", tool, errno);
  if (!S_ISREG(status.st_mode)) refuse("tool", tool, "not a regular file");
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
    refuse("tool", tool, "setuid or setgid; remove the bit (chmod ug-s) where user namespaces are allowed");
}

void execute_tool(const struct launch *launch) {
  char number[16];
  expect_unprivileged(launch->tool);
  snprintf(number, sizeof number, "%d", write_arguments(launch));
  char *argv[] = {"bwrap", "--args", number, "--", "/sallyport/init", "init", NULL};
  char *environment[] = {NULL};
  execve(launch->tool, argv, environment);
  die_as(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "tool", launch->tool, errno);
}
