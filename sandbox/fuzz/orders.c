// What the supervisor orders of the outer launcher, up to `exec`.
#include <string.h>

#include "../init/frames.h"
#include "../init/init.h"
#include "../init/outer.h"
#include "harness.h"

static struct launch launch;

static void parse(void) { read_launch_orders(&launch); }

static void judge(void) {
  expect(launch.has_ids && launch.tool != NULL && launch.tool[0] == '/', "an exec without ids or a tool");
  expect(launch.cgroup_count <= CGROUPS_MAX && launch.mount_count <= MOUNTS_MAX,
         "more than there is room for");
  expect(launch.argument_count <= ARGUMENTS_MAX, "more arguments than there is room for");
  for (size_t index = 0; index < launch.cgroup_count; index++) {
    const char *path = launch.cgroups[index], *name = strrchr(path, '/');
    expect(path[0] == '/' && name > path && (strcmp(name, "/cgroup.procs") == 0 || strcmp(name, "/tasks") == 0),
           "a file that is no cgroup's");
  }
  for (size_t index = 0; index < launch.mount_count; index++) {
    expect(launch.mounts[index].source[0] == '/', "a mount of a relative path");
    expect(strchr(launch.mounts[index].name, '/') == NULL && launch.mounts[index].name[0] != '.',
           "a staging path that leads away");
  }
  expect(launch.cover_count <= COVERS_MAX, "more covers than there is room for");
  for (size_t index = 0; index < launch.cover_count; index++)
    expect(strncmp(launch.covers[index].path, "/proc/", 6) == 0 &&
               strstr(launch.covers[index].path, "/..") == NULL,
           "a cover of what is not in /proc");
  for (size_t index = 0; index < launch.argument_count; index++)
    exact(launch.arguments[index].bytes, launch.arguments[index].length);
}

void fuzz_orders(void) {
  memset(&launch, 0, sizeof launch);
  if (outlives(parse))
    judge();
  else
    expect(ended_with == EXIT_SETUP, "another end than that of a refusal");
}
