// Who the sandbox tool runs as: its own keyring, one uid and gid, no groups, no capabilities, no way back.
#include "init.h"
#include "outer.h"

#include <errno.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void join_new_keyring(void) {
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0) return;
  if (errno == ENOSYS) return;  // a kernel without keys has none to pass on
  die("keyring", "session keyring", errno);
}

static void expect_identity(uid_t uid, gid_t gid) {
  uid_t real_uid, effective_uid, saved_uid;
  gid_t real_gid, effective_gid, saved_gid;
  if (getresuid(&real_uid, &effective_uid, &saved_uid) != 0) die("identity", "getresuid", errno);
  if (getresgid(&real_gid, &effective_gid, &saved_gid) != 0) die("identity", "getresgid", errno);
  if (real_uid != uid || effective_uid != uid || saved_uid != uid || real_gid != gid ||
      effective_gid != gid || saved_gid != gid)
    refuse("identity", "uid and gid", "not the ones that were ordered");
  if (setuid(0) == 0 || setgid(0) == 0) refuse("identity", "uid and gid", "0 could be taken back");
}

void drop_identity(uid_t uid, gid_t gid) {
  if (uid == 0 || gid == 0) refuse("identity", "uid or gid 0", "a sandbox never runs as root");
  if (uid == (uid_t)-1 || gid == (gid_t)-1) refuse("identity", "uid or gid", "-1 would leave it as it is");
  if (geteuid() == 0) {
    // Groups first, uid last: each needs the rights that the next one gives up.
    if (setgroups(0, NULL) != 0) die("identity", "setgroups", errno);
    if (setresgid(gid, gid, gid) != 0) die("identity", "setresgid", errno);
    if (setresuid(uid, uid, uid) != 0) die("identity", "setresuid", errno);
    if (getgroups(0, NULL) != 0) refuse("identity", "groups", "some are left after setgroups");
  }
  // A uid change leaves the inheritable set, and a service manager may give an ordinary uid ambient ones.
  drop_capability_sets();
  // Without root the ids must be the daemon's own already, and its groups stay, for only root can drop
  // groups: they reach nothing beyond what is mounted.
  expect_identity(uid, gid);
  forbid_new_privileges();
}
