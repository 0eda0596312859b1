// Privilege goes down and never up: capability sets, securebits, no_new_privs, and the check that it is so.
#include "init.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_data_struct capability_words[_LINUX_CAPABILITY_U32S_3];

static void read_sets(capability_words words) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  if (syscall(SYS_capget, &header, words) != 0) die("capabilities", "capget", errno);
}

static bool has_effective(int capability) {
  capability_words words = {{0}};
  read_sets(words);
  return (words[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

// Empties inheritable, permitted and effective, and with them the ambient set, which the kernel keeps within the first two;
// any process may.
void drop_capability_sets(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  capability_words none = {{0}};
  if (syscall(SYS_capset, &header, none) != 0) die("capabilities", "capset", errno);
}

// The bounding set, which CAP_SETPCAP alone may shrink: so it goes before the other four.
static void drop_bounding_set(void) {
  for (int capability = 0; capability < 64; capability++) {
    int is_set = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (is_set < 0) break;  // beyond the last capability that this kernel knows
    if (is_set == 1 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      die("capabilities", "bounding set (the sandbox tool must leave CAP_SETPCAP)", errno);
  }
}

// gVisor's kernel has no such bits, and nobody in here becomes uid 0.
static bool has_secure_bits(void) { return prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) >= 0 || errno != EINVAL; }

// All five sets. Where CAP_SETPCAP is there, uid 0 becomes an ordinary uid for ever as well.
void drop_all_capabilities(void) {
  const int locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  bool may_lock = has_effective(CAP_SETPCAP) && has_secure_bits();
  drop_bounding_set();
  if (may_lock && prctl(PR_SET_SECUREBITS, locked, 0, 0, 0) != 0) die("capabilities", "securebits", errno);
  drop_capability_sets();
}

void expect_no_capabilities(void) {
  capability_words words = {{0}};
  read_sets(words);
  for (int word = 0; word < _LINUX_CAPABILITY_U32S_3; word++)
    if ((words[word].effective | words[word].permitted | words[word].inheritable) != 0)
      refuse("capabilities", "capget", "a capability is left after all were dropped");
  for (int capability = 0; capability < 64; capability++) {
    int is_bounding = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (is_bounding < 0) break;
    if (is_bounding == 1 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1)
      refuse("capabilities", "bounding and ambient set", "a capability is left after all were dropped");
  }
}

void forbid_new_privileges(void) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("no new privileges", "prctl", errno);
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    refuse("no new privileges", "prctl", "the kernel did not keep it");
}
