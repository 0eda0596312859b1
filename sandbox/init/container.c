// The first steps of PID 1 in an engine's container: what the sandbox tool does elsewhere. Then it is the same init.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "frames.h"
#include "init.h"
#include "sandbox.h"

static const char control_path[] = "/sallyport/control";
// Beside a /proc/sys that is read-only as a whole: an engine can't leave a part of it out, and a host's policy may not either.
static const char counters_path[] = "/sallyport/counters";

// The engine gives three streams, which are the server's; everything of ours goes over one socket.
static void arrange_descriptors(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, control_path, sizeof control_path);
  close_from(STDERR_FILENO + 1);
  if (socket(AF_UNIX, SOCK_STREAM, 0) != FD_CONTROL) die("container", "control channel", errno);
  if (connect(FD_CONTROL, (struct sockaddr *)&address, sizeof address) != 0)
    die("container", control_path, errno);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_DUPFD, FD_SERVER_STDIN + fd) != FD_SERVER_STDIN + fd)
      die("container", "standard streams", errno);
  int null = open("/dev/null", O_RDWR);
  if (null < 0) die("container", "/dev/null", errno);
  // stderr stays: it takes set-up diagnostics until the server runs.
  if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) die("container", "/dev/null", errno);
  close(null);
}

// What the engine was told: an ordinary user, and no group but its own, whatever the image's files say of it.
static void expect_ordinary_user(uid_t uid, gid_t gid) {
  gid_t groups[16];
  if (uid == 0 || gid == 0) refuse("container", "uid or gid 0", "a server never runs as root");
  int count = getgroups(16, groups);
  if (count < 0) die("container", "groups", errno);
  for (int index = 0; index < count; index++)
    if (groups[index] != gid) refuse("container", "groups", "the engine left one that is not the user's own");
}

static void write_whole(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) die("container", path, errno);
  close(fd);
}

// One id mapped to one: in here init has the rights over a network and over counters that the host gave nobody.
static void own_namespaces(uid_t uid, gid_t gid, uint32_t inner_uid, uint32_t inner_gid) {
  char map[64];
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) die("container", "user namespace", errno);
  // A kernel without the file lets nobody set groups without a right to: gVisor's.
  if (access("/proc/self/setgroups", F_OK) == 0) write_whole("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", inner_uid, uid);
  write_whole("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "%u %u 1", inner_gid, gid);
  write_whole("/proc/self/gid_map", map);
}

static void raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("container", "lo", errno);
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0 && errno != ENOTTY) die("container", "lo", errno);
  request.ifr_flags |= IFF_UP;
  // gVisor's can't be raised, and need not be.
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0 && errno != ENOTTY) die("container", "lo", errno);
  close(fd);
}

// The engine's filter names calls; this one judges their arguments too, and takes back what the steps above needed.
static void install_filter(const void *bytes, size_t length) {
  struct sock_fprog program = {.len = (unsigned short)(length / sizeof(struct sock_filter)),
                               .filter = (struct sock_filter *)(uintptr_t)bytes};
  if (length == 0 || length % sizeof(struct sock_filter) != 0 || length / sizeof(struct sock_filter) > BPF_MAXINSNS)
    refuse("container", "filter", "not a list of instructions");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) die("container", "filter", errno);
}

struct setting {
  const void *filter;
  size_t filter_bytes;
  uint32_t uid, gid;
};

static struct setting read_setting(void) {
  struct setting setting = {0};
  for (;;) {
    struct frame frame = frame_read();
    switch (frame.type) {
      case 'd':
        if (setting.filter != NULL) refuse("container", "filter", "given twice");
        setting.filter = frame.at;
        setting.filter_bytes = frame.left;
        continue;
      case 'u':
        setting.uid = take_u32(&frame);
        setting.gid = take_u32(&frame);
        break;
      case 'x':
        take_end(&frame);
        if (setting.filter == NULL || setting.uid == 0 || setting.gid == 0)
          refuse("container", "filter or ids", "missing before exec");
        return setting;
      default: frame_out_of_order(&frame);
    }
    take_end(&frame);
  }
}

int container_main(void) {
  uid_t uid = getuid();
  gid_t gid = getgid();

  // 1. Arrange the descriptors. As the launcher leaves them elsewhere, so that all that follows is the same.
  arrange_descriptors();

  // 2. Be an ordinary user. The engine was told so; that it did so is looked at here.
  expect_ordinary_user(uid, gid);
  forbid_new_privileges();

  // 3. Read the orders. What the namespaces are to be, and the filter that closes them off.
  struct setting setting = read_setting();

  // 4. Take namespaces of its own. The engine's user has no right over the engine's network, so there is another one.
  own_namespaces(uid, gid, setting.uid, setting.gid);
  raise_loopback();
  find_counters_at(counters_path);

  // 5. Install the filter. From here no call of step 4 is to be had again, by this process or any other.
  install_filter(setting.filter, setting.filter_bytes);

  return init_main();
}
