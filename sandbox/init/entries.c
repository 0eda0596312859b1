// The guard's list of what to clean up: a fixed table of absolute paths, and a clear no when it is full.
#include <string.h>

#include "guard.h"

static const struct {
  const char *word;
  enum kind kind;
} words[] = {
    {"cgroup ", CGROUP},
    {"unlink ", FILE_TO_UNLINK},
    {"rmdir ", FOLDER_TO_REMOVE},
    {"doors ", DOORS},
};

static bool climbs(const char *path) {
  for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
    if (at[3] == '/' || at[3] == '\0') return true;
  return false;
}

const char *add_entry(struct entries *entries, const char *line) {
  for (size_t word = 0; word < sizeof words / sizeof words[0]; word++) {
    size_t length = strlen(words[word].word);
    if (strncmp(line, words[word].word, length) != 0) continue;
    const char *path = line + length;
    if (path[0] != '/' || path[1] == '\0') return "not an absolute path below /";
    if (climbs(path)) return "a path with ..";
    if (strlen(path) >= PATH_BYTES) return "longer than 4095 bytes";
    for (size_t index = 0; index < entries->count; index++)
      if (entries->list[index].kind == words[word].kind && strcmp(entries->list[index].path, path) == 0)
        return NULL;
    if (entries->count == ENTRIES_MAX) return "the table of 256 entries is full";
    struct entry *entry = &entries->list[entries->count++];
    entry->kind = words[word].kind;
    strcpy(entry->path, path);
    return NULL;
  }
  return "not one of: cgroup PATH | unlink PATH | rmdir PATH | doors PATH | ends PID | done";
}
