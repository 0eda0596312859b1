// Attempts on files: what is there, what it says, what can be changed, and how much of it fits.
#include "probes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int stat_it(int count, char **arguments) {
  (void)count;
  struct stat status;
  return lstat(arguments[0], &status);
}

static int mode(int count, char **arguments) {
  (void)count;
  struct stat status;
  if (lstat(arguments[0], &status) != 0) return -1;
  fprintf(found, "%03o", status.st_mode & 07777);
  return 0;
}

// A folder counts as read when it is listed.
static int read_it(int count, char **arguments) {
  (void)count;
  char byte;
  int fd = open(arguments[0], O_RDONLY | O_NONBLOCK);
  if (fd < 0) return -1;
  if (read(fd, &byte, 1) >= 0 || errno == EISDIR) return 0;
  return -1;
}

static int create(int count, char **arguments) {
  (void)count;
  int fd = open(arguments[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
  return fd < 0 ? -1 : unlink(arguments[0]);
}

// Opens for writing and writes nothing: on a system where it opens, nothing changes.
static int open_for_writing(int count, char **arguments) {
  (void)count;
  return open(arguments[0], O_WRONLY | O_NONBLOCK);
}

static int text(int count, char **arguments) {
  (void)count;
  char piece[4096];
  int fd = open(arguments[0], O_RDONLY);
  if (fd < 0) return -1;
  for (ssize_t got; (got = read(fd, piece, sizeof piece)) != 0;) {
    if (got < 0) return -1;
    fwrite(piece, 1, (size_t)got, found);
  }
  return 0;
}

// The same of this program's status, with a signal blocked and a umask that it was not born with.
static int changed_status(int count, char **arguments) {
  static char path[] = "/proc/self/status";
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  umask(0);
  (void)arguments;
  return text(count, (char *[]){path});
}

// What of it a kernel tells that has neither mask in its status: gVisor's.
static int start(int count, char **arguments) {
  (void)count, (void)arguments;
  sigset_t blocked;
  unsigned long long bits = 0;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  for (int signal = 1; signal <= 64; signal++)
    if (sigismember(&blocked, signal) == 1) bits |= 1ull << (signal - 1);
  mode_t mask = umask(0);
  fprintf(found, "Umask:\t%04o\nSigBlk:\t%016llx\n", mask, bits);
  umask(mask);
  return 0;
}

static int list(int count, char **arguments) {
  (void)count;
  DIR *folder = opendir(arguments[0]);
  if (folder == NULL) return -1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) fprintf(found, "%s\n", entry->d_name);
  return 0;
}

static int link_text(int count, char **arguments) {
  (void)count;
  char target[PATH_MAX];
  ssize_t length = readlink(arguments[0], target, sizeof target);
  if (length < 0) return -1;
  fwrite(target, 1, (size_t)length, found);
  return 0;
}

static int flags(int count, char **arguments) {
  (void)count;
  struct statvfs status;
  if (statvfs(arguments[0], &status) != 0) return -1;
  fputs(status.f_flag & ST_RDONLY ? "ro" : "rw", found);
  if (status.f_flag & ST_NOSUID) fputs(" nosuid", found);
  return 0;
}

static int size(int count, char **arguments) {
  (void)count;
  struct statvfs status;
  if (statvfs(arguments[0], &status) != 0) return -1;
  fprintf(found, "%llu", (unsigned long long)status.f_blocks * status.f_frsize);
  return 0;
}

// Where the kernel reserves nothing: gVisor's.
static int write_zeros(int fd, long long bytes) {
  static const char zeros[65536];
  while (bytes > 0) {
    ssize_t wrote = write(fd, zeros, bytes < (long long)sizeof zeros ? (size_t)bytes : sizeof zeros);
    if (wrote < 0) return -1;
    bytes -= wrote;
  }
  return 0;
}

// Reserves the bytes in one file of the folder, and lets go of them again; tells how many its file system has, where it has not as many.
static int reserve(int count, char **arguments) {
  (void)count;
  int fd = open(arguments[0], O_TMPFILE | O_WRONLY, 0600);
  long long bytes = strtoll(arguments[1], NULL, 10);
  // gVisor has no files without a name.
  if (fd < 0 && errno == EOPNOTSUPP) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/reserve-XXXXXX", arguments[0]);
    fd = mkstemp(name);
    unlink(name);
  }
  if (fd < 0) return -1;
  int result = fallocate(fd, 0, 0, bytes) == 0 ? 0 : errno == EOPNOTSUPP ? write_zeros(fd, bytes) : -1;
  int error = errno;
  struct statvfs whole;
  if (result != 0 && fstatvfs(fd, &whole) == 0) fprintf(found, "%llu", (unsigned long long)whole.f_blocks * whole.f_frsize);
  errno = error;
  return result;
}

// Reads the second path through a symbolic link at the first.
static int read_through_link(int count, char **arguments) {
  if (symlink(arguments[1], arguments[0]) != 0) return -1;
  int result = read_it(count, arguments);
  int error = errno;
  unlink(arguments[0]);
  errno = error;
  return result;
}

static int hard_link(int count, char **arguments) {
  (void)count;
  if (link(arguments[1], arguments[0]) != 0) return -1;
  return unlink(arguments[0]);
}

// Gives the first path the second name, and its own back.
static int rename_it(int count, char **arguments) {
  (void)count;
  return rename(arguments[0], arguments[1]) == 0 ? rename(arguments[1], arguments[0]) : -1;
}

// Covered is a null device in the place of a file, and a folder without entries in the place of a folder.
static int uncovered(int count, char **arguments) {
  (void)count;
  struct stat status;
  if (lstat(arguments[0], &status) != 0) return -1;
  if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) return errno = EACCES, -1;
  if (!S_ISDIR(status.st_mode)) return 0;
  DIR *folder = opendir(arguments[0]);
  if (folder == NULL) return -1;
  int entries = 0;
  while (readdir(folder) != NULL) entries++;
  return entries > 2 ? 0 : (errno = ENODATA, -1);
}

// One line for each entry of the folder, processes and links apart, in which there is something to read.
static int facts(int count, char **arguments) {
  (void)count;
  DIR *folder = opendir(arguments[0]);
  if (folder == NULL) return -1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char path[PATH_MAX], byte;
    struct stat status;
    if (entry->d_name[0] == '.' || (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')) continue;
    snprintf(path, sizeof path, "%s/%s", arguments[0], entry->d_name);
    if (lstat(path, &status) != 0 || S_ISLNK(status.st_mode)) continue;
    char *inner[] = {path};
    if (S_ISDIR(status.st_mode) ? uncovered(1, inner) != 0 : S_ISCHR(status.st_mode)) continue;
    int fd = S_ISDIR(status.st_mode) ? -1 : open(path, O_RDONLY | O_NONBLOCK);
    if (S_ISDIR(status.st_mode) || (fd >= 0 && read(fd, &byte, 1) > 0)) fprintf(found, "%s\n", entry->d_name);
    if (fd >= 0) close(fd);
  }
  return 0;
}

const struct attempt file_attempts[] = {
    {"facts", 1, facts}, {"changed-status", 0, changed_status}, {"start", 0, start},
    {"stat", 1, stat_it},      {"mode", 1, mode},
    {"read", 1, read_it},          {"create", 1, create}, {"open-for-writing", 1, open_for_writing},
    {"text", 1, text},         {"list", 1, list},             {"link", 1, link_text}, {"flags", 1, flags},
    {"size", 1, size},         {"reserve", 2, reserve},       {"read-through-link", 2, read_through_link},
    {"hard-link", 2, hard_link}, {"rename", 2, rename_it}, {"uncovered", 1, uncovered}, {NULL, 0, NULL},
};
