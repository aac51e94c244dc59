/* Preloaded into a process that saves: counts its file operations below a folder, and kills or stops it at one. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BEFORE, WITHIN, AFTER };

static char prefix[PATH_MAX];
static size_t prefix_length;
static int log_fd = -1;
static long fatal_point;
static int fatal_moment;
static atomic_long points;

/* SIGSTOP instead stops the whole process there, until it is continued; then not within a write. */
int crash_points_signal = SIGKILL;

/* Counts from here on. The process dies at operation `point` (from 1; 0 for none): before it, within it (a write that
   is half done) or after it. Each operation is a line of the file `log`. */
void crash_points_arm(const char *folder, int log, long point, int moment) {
    snprintf(prefix, sizeof prefix, "%s", folder);
    log_fd = log;
    fatal_point = point;
    fatal_moment = moment;
    atomic_store(&points, 0);
    prefix_length = strlen(prefix);
}

static int is_below(const char *path) {
    return strncmp(path, prefix, prefix_length) == 0 && (path[prefix_length] == '/' || path[prefix_length] == 0);
}

static const char *name_fd(int fd, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    buffer[length > 0 ? length : 0] = 0;
    return buffer;
}

static const char *name_at(int folder, const char *path, char *buffer) {
    if (path[0] == '/' || folder == AT_FDCWD)
        return path;
    size_t length = strlen(name_fd(folder, buffer));
    snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    return buffer;
}

static void die(void) {
    /* To this very thread, which then takes no further step, rather than to whichever the kernel finds first. */
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), crash_points_signal);
    while (crash_points_signal == SIGKILL)
        pause();
}

/* The number of this operation when its path counts, else 0. */
static long enter(const char *operation, const char *path) {
    if (!prefix_length || !is_below(path))
        return 0;
    long point = atomic_fetch_add(&points, 1) + 1;
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s %s\n", operation, path + prefix_length);
    syscall(SYS_write, log_fd, line, (size_t)length);
    if (point == fatal_point && fatal_moment == BEFORE)
        die();
    return point;
}

static int is_torn(long point) {
    return point && point == fatal_point && fatal_moment == WITHIN;
}

static void leave(long point) {
    if (point && point == fatal_point && fatal_moment == AFTER)
        die();
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define GUARD(operation, path, call) \
    char buffer[PATH_MAX]; \
    (void)buffer; \
    long point = enter(operation, path); \
    __typeof__(call) result = call; \
    leave(point); \
    return result

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE(flags) REAL(open); GUARD("open", path, real(path, flags, mode)); }

int open64(const char *path, int flags, ...) {
    MODE(flags) REAL(open64); GUARD("open", path, real(path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags) REAL(openat); GUARD("open", name_at(folder, path, buffer), real(folder, path, flags, mode));
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags) REAL(openat64); GUARD("open", name_at(folder, path, buffer), real(folder, path, flags, mode));
}

int creat(const char *path, mode_t mode) { REAL(creat); GUARD("open", path, real(path, mode)); }

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    char buffer[PATH_MAX];
    long point = prefix_length ? enter("write", name_fd(fd, buffer)) : 0;
    if (is_torn(point)) {
        real(fd, data, size / 2);
        die();
    }
    ssize_t result = real(fd, data, size);
    leave(point);
    return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    char buffer[PATH_MAX];
    long point = prefix_length ? enter("write", name_fd(fd, buffer)) : 0;
    if (is_torn(point)) {
        struct iovec half = {parts[0].iov_base, parts[0].iov_len / 2};
        if (count > 1)
            real(fd, parts, count / 2);
        else
            real(fd, &half, 1);
        die();
    }
    ssize_t result = real(fd, parts, count);
    leave(point);
    return result;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite); GUARD("write", name_fd(fd, buffer), real(fd, data, size, at));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64); GUARD("write", name_fd(fd, buffer), real(fd, data, size, at));
}

int ftruncate(int fd, off_t size) { REAL(ftruncate); GUARD("truncate", name_fd(fd, buffer), real(fd, size)); }

int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); GUARD("truncate", name_fd(fd, buffer), real(fd, size)); }

int fsync(int fd) { REAL(fsync); GUARD("fsync", name_fd(fd, buffer), real(fd)); }

int fdatasync(int fd) { REAL(fdatasync); GUARD("fsync", name_fd(fd, buffer), real(fd)); }

int rename(const char *from, const char *to) { REAL(rename); GUARD("rename", from, real(from, to)); }

int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    REAL(renameat); GUARD("rename", name_at(from_fd, from, buffer), real(from_fd, from, to_fd, to));
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
    REAL(renameat2); GUARD("rename", name_at(from_fd, from, buffer), real(from_fd, from, to_fd, to, flags));
}

int link(const char *from, const char *to) { REAL(link); GUARD("link", to, real(from, to)); }

int unlink(const char *path) { REAL(unlink); GUARD("unlink", path, real(path)); }

int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    GUARD(flags & AT_REMOVEDIR ? "rmdir" : "unlink", name_at(folder, path, buffer), real(folder, path, flags));
}

int mkdir(const char *path, mode_t mode) { REAL(mkdir); GUARD("mkdir", path, real(path, mode)); }

int mkdirat(int folder, const char *path, mode_t mode) {
    REAL(mkdirat); GUARD("mkdir", name_at(folder, path, buffer), real(folder, path, mode));
}

int rmdir(const char *path) { REAL(rmdir); GUARD("rmdir", path, real(path)); }
