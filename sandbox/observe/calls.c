// What system calls say of files, programs and addresses: paths as they were asked for, where they led, and what came of it.
#include "observe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <errno.h>

// Where a call has a path: the argument with the folder's descriptor, or NONE, and the path's own.
enum { NONE = -1 };

// How a path is used. OPEN is read or written, as the flags of its argument say.
enum use { OPEN, LOOK, CHANGE, EXECUTE };

struct row {
  long number;
  enum use use;
  int folder, path;
  int flags;  // argument with the flags of OPEN
};

static const struct row rows[] = {
    {SYS_openat, OPEN, 0, 1, 2},
    {SYS_openat2, OPEN, 0, 1, 2},
    {SYS_execve, EXECUTE, NONE, 0, NONE},
    {SYS_execveat, EXECUTE, 0, 1, NONE},
    {SYS_newfstatat, LOOK, 0, 1, NONE},
    {SYS_statx, LOOK, 0, 1, NONE},
    {SYS_faccessat, LOOK, 0, 1, NONE},
    {SYS_faccessat2, LOOK, 0, 1, NONE},
    {SYS_readlinkat, LOOK, 0, 1, NONE},
    {SYS_statfs, LOOK, NONE, 0, NONE},
    {SYS_chdir, LOOK, NONE, 0, NONE},
    {SYS_getxattr, LOOK, NONE, 0, NONE},
    {SYS_lgetxattr, LOOK, NONE, 0, NONE},
    {SYS_listxattr, LOOK, NONE, 0, NONE},
    {SYS_inotify_add_watch, LOOK, NONE, 1, NONE},
    {SYS_truncate, CHANGE, NONE, 0, NONE},
    {SYS_mkdirat, CHANGE, 0, 1, NONE},
    {SYS_mknodat, CHANGE, 0, 1, NONE},
    {SYS_unlinkat, CHANGE, 0, 1, NONE},
    {SYS_renameat2, CHANGE, 0, 1, NONE},
    {SYS_renameat2, CHANGE, 2, 3, NONE},
    {SYS_linkat, LOOK, 0, 1, NONE},
    {SYS_linkat, CHANGE, 2, 3, NONE},
    {SYS_symlinkat, CHANGE, 1, 2, NONE},
    {SYS_fchmodat, CHANGE, 0, 1, NONE},
    {SYS_fchownat, CHANGE, 0, 1, NONE},
    {SYS_utimensat, CHANGE, 0, 1, NONE},
    {SYS_setxattr, CHANGE, NONE, 0, NONE},
#ifdef SYS_renameat
    {SYS_renameat, CHANGE, 0, 1, NONE},
    {SYS_renameat, CHANGE, 2, 3, NONE},
#endif
#ifdef SYS_open
    {SYS_open, OPEN, NONE, 0, 1},
    {SYS_creat, CHANGE, NONE, 0, NONE},
    {SYS_stat, LOOK, NONE, 0, NONE},
    {SYS_lstat, LOOK, NONE, 0, NONE},
    {SYS_access, LOOK, NONE, 0, NONE},
    {SYS_readlink, LOOK, NONE, 0, NONE},
    {SYS_mkdir, CHANGE, NONE, 0, NONE},
    {SYS_mknod, CHANGE, NONE, 0, NONE},
    {SYS_rmdir, CHANGE, NONE, 0, NONE},
    {SYS_unlink, CHANGE, NONE, 0, NONE},
    {SYS_rename, CHANGE, NONE, 0, NONE},
    {SYS_rename, CHANGE, NONE, 1, NONE},
    {SYS_link, LOOK, NONE, 0, NONE},
    {SYS_link, CHANGE, NONE, 1, NONE},
    {SYS_symlink, CHANGE, NONE, 1, NONE},
    {SYS_chmod, CHANGE, NONE, 0, NONE},
    {SYS_chown, CHANGE, NONE, 0, NONE},
    {SYS_lchown, CHANGE, NONE, 0, NONE},
    {SYS_utime, CHANGE, NONE, 0, NONE},
    {SYS_utimes, CHANGE, NONE, 0, NONE},
#endif
};

// Calls whose result is a descriptor, the highest of which tells how many were open at once.
static const long openers[] = {SYS_openat,      SYS_openat2,       SYS_socket,     SYS_accept4,       SYS_accept,
                               SYS_dup,         SYS_dup3,          SYS_eventfd2,   SYS_epoll_create1, SYS_timerfd_create,
                               SYS_memfd_create, SYS_inotify_init1, SYS_pidfd_open,
#ifdef SYS_open
                               SYS_open,        SYS_creat,         SYS_dup2,
#endif
};

static uint64_t counts[CALLS_MAX], refusals[CALLS_MAX];
static int64_t highest_descriptor = 2;

static size_t copy(pid_t tid, void *to, uint64_t from, size_t bytes) {
  struct iovec here = {.iov_base = to, .iov_len = bytes};
  struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
  ssize_t copied = process_vm_readv(tid, &here, 1, &there, 1, 0);
  return copied < 0 ? 0 : (size_t)copied;
}

// Up to the end of each page at a time: what lies behind a string's last page may be nothing.
static bool copy_text(pid_t tid, char to[PATH_BYTES], uint64_t from) {
  size_t length = 0;
  while (from != 0 && length < PATH_BYTES - 1) {
    size_t chunk = 4096 - (from + length) % 4096;
    if (chunk > PATH_BYTES - 1 - length) chunk = PATH_BYTES - 1 - length;
    size_t copied = copy(tid, to + length, from + length, chunk);
    if (copied == 0) return false;
    if (memchr(to + length, '\0', copied) != NULL) return to[0] != '\0';
    length += copied;
  }
  return false;
}

static bool find_path(const struct watched *it, const struct row *row, char to[2 * PATH_BYTES]) {
  char text[PATH_BYTES], base[PATH_BYTES];
  if (!copy_text(it->tid, text, it->arguments[row->path])) return false;
  int folder = row->folder == NONE ? AT_FDCWD : (int)it->arguments[row->folder];
  if (text[0] == '/') {
    snprintf(to, 2 * PATH_BYTES, "%s", text);
    return true;
  }
  bool is_known = folder == AT_FDCWD ? link_of(base, "/proc/%d/cwd", it->tid, 0) : link_of(base, "/proc/%d/fd/%d", it->tid, folder);
  if (is_known) snprintf(to, 2 * PATH_BYTES, "%s/%s", base, text);
  return is_known;
}

void call_begins(struct watched *it) {
  it->has_path[0] = it->has_path[1] = false;
  if (it->number < CALLS_MAX) counts[it->number]++;
  int found = 0;
  for (size_t index = 0; index < sizeof rows / sizeof *rows; index++) {
    if ((uint64_t)rows[index].number != it->number) continue;
    it->has_path[found] = find_path(it, &rows[index], it->paths[found]);
    found++;
  }
}

static uint64_t flags_of(const struct watched *it, const struct row *row) {
  uint64_t flags = it->arguments[row->flags];
  if (it->number != SYS_openat2) return flags;
  uint64_t how = 0;
  return copy(it->tid, &how, flags, sizeof how) == sizeof how ? how : 0;
}

static const char *word_of(const struct watched *it, const struct row *row) {
  if (row->use == LOOK) return "look";
  if (row->use == EXECUTE) return "execute";
  if (row->use == CHANGE) return "change";
  uint64_t flags = flags_of(it, row);
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0 ? "change" : "read";
}

// Where an opened path led, links followed, and whether that is a folder.
static const char *led_to(const struct watched *it, int64_t descriptor, char real[PATH_BYTES]) {
  char path[64];
  struct stat found;
  if (!link_of(real, "/proc/%d/fd/%d", it->tid, (int)descriptor)) real[0] = '\0';
  snprintf(path, sizeof path, "/proc/%d/fd/%d", it->tid, (int)descriptor);
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode) ? "folder" : "file";
}

static void tell_paths(const struct watched *it, int64_t result) {
  int found = 0;
  for (size_t index = 0; index < sizeof rows / sizeof *rows; index++) {
    const struct row *row = &rows[index];
    if ((uint64_t)row->number != it->number) continue;
    if (it->has_path[found]) {
      char real[PATH_BYTES] = "";
      const char *kind = row->use == OPEN && result >= 0 ? led_to(it, result, real) : "";
      tell_begin(word_of(it, row));
      tell_number(it->process);
      tell_number(result < 0 ? -result : 0);
      tell_text(it->paths[found]);
      tell_text(real);
      tell_text(kind);
      tell_end();
    }
    found++;
  }
}

static void tell_address(const struct watched *it, uint64_t at, uint64_t length, int64_t result) {
  union {
    struct sockaddr_storage any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
  } to = {0};
  char text[INET6_ADDRSTRLEN] = "";
  if (at == 0 || length > sizeof to.any || copy(it->tid, &to, at, length) != length) return;
  int port = 0;
  if (to.any.ss_family == AF_INET) {
    inet_ntop(AF_INET, &to.four.sin_addr, text, sizeof text);
    port = ntohs(to.four.sin_port);
  } else if (to.any.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &to.six.sin6_addr, text, sizeof text);
    port = ntohs(to.six.sin6_port);
  } else if (to.any.ss_family != AF_UNIX || to.local.sun_path[0] != '/') {
    return;
  }
  to.local.sun_path[sizeof to.local.sun_path - 1] = '\0';
  tell_begin(to.any.ss_family == AF_UNIX ? "socket" : "dial");
  tell_number(it->process);
  tell_number(result < 0 ? -result : 0);
  tell_text(to.any.ss_family == AF_UNIX ? to.local.sun_path : text);
  tell_number(port);
  tell_end();
}

void call_ends(struct watched *it, int64_t result) {
  if (it->number < CALLS_MAX && (result == -EPERM || result == -ENOSYS || result == -EAFNOSUPPORT)) refusals[it->number]++;
  for (size_t index = 0; index < sizeof openers / sizeof *openers; index++)
    if ((uint64_t)openers[index] == it->number && result > highest_descriptor) highest_descriptor = result;
  tell_paths(it, result);
  if (it->number == SYS_connect) tell_address(it, it->arguments[1], it->arguments[2], result);
  if (it->number == SYS_sendto) tell_address(it, it->arguments[4], it->arguments[5], result);
}

void calls_summary(void) {
  for (int number = 0; number < CALLS_MAX; number++) {
    if (counts[number] == 0) continue;
    tell_begin("call");
    tell_number(number);
    tell_number((int64_t)counts[number]);
    tell_number((int64_t)refusals[number]);
    tell_end();
  }
  tell_begin("descriptors");
  tell_number(highest_descriptor + 1);
  tell_end();
}
