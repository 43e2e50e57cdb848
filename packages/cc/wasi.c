/* Functions of the C library that WASI has no means for, as far as a single process can have them. */

/* The published compiler does not know defs.h. */
#ifndef _WASI_EMULATED_SIGNAL
#define _WASI_EMULATED_SIGNAL 1
#define _WASI_EMULATED_PROCESS_CLOCKS 1
#define _WASI_EMULATED_GETPID 1
#define L_tmpnam 20
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static void (*handlers[_NSIG])(int);

void __SIG_IGN(int number) {}

void __SIG_ERR(int number) {}

void (*signal(int number, void (*handler)(int)))(int)
{
    void (*before)(int);
    if (number <= 0 || number >= _NSIG || number == SIGKILL || number == SIGSTOP) {
        errno = EINVAL;
        return SIG_ERR;
    }
    before = handlers[number];
    handlers[number] = handler;
    return before;
}

/* Nobody else sends a signal. */
int raise(int number)
{
    void (*handler)(int);
    if (number < 0 || number >= _NSIG) {
        errno = EINVAL;
        return -1;
    }
    handler = handlers[number];
    if (number == 0 || handler == SIG_IGN)
        return 0;
    if (handler != SIG_DFL) {
        handler(number);
        return 0;
    }
    if (number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH)
        return 0;
    fflush(NULL);
    _Exit(128 + number);
}

/* The time since it was first asked for: a program has no clock of its own. */
clock_t clock(void)
{
    static struct timespec first;
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now))
        return (clock_t)-1;
    if (!first.tv_sec && !first.tv_nsec)
        first = now;
    return (clock_t)(now.tv_sec - first.tv_sec) * CLOCKS_PER_SEC + (now.tv_nsec - first.tv_nsec) / (1000000000 / CLOCKS_PER_SEC);
}

clock_t times(struct tms *used)
{
    clock_t now = clock();
    memset(used, 0, sizeof *used);
    used->tms_utime = now;
    return now;
}

int getrusage(int who, struct rusage *used)
{
    clock_t now = clock();
    memset(used, 0, sizeof *used);
    if (who == RUSAGE_SELF) {
        used->ru_utime.tv_sec = now / CLOCKS_PER_SEC;
        used->ru_utime.tv_usec = now % CLOCKS_PER_SEC * 1000000 / CLOCKS_PER_SEC;
    }
    return 0;
}

pid_t getpid(void)
{
    return 42;
}

/* Makes the names of `template` until `make` takes one of them. */
static int make_unique(char *template, int suffix, int (*make)(const char *))
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char random[6];
    char *place;
    int length = strlen(template), tries, i, made;
    if (suffix < 0 || length < suffix + 6 || memcmp(template + length - suffix - 6, "XXXXXX", 6)) {
        errno = EINVAL;
        return -1;
    }
    place = template + length - suffix - 6;
    for (tries = 0; tries < 100; tries++) {
        if (getentropy(random, sizeof random))
            return -1;
        for (i = 0; i < 6; i++)
            place[i] = letters[random[i] % 36];
        made = make(template);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

static int make_file(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
}

static int make_directory(const char *path)
{
    return mkdir(path, 0700);
}

int mkstemps(char *template, int suffix)
{
    return make_unique(template, suffix, make_file);
}

int mkstemp(char *template)
{
    return make_unique(template, 0, make_file);
}

char *mkdtemp(char *template)
{
    return make_unique(template, 0, make_directory) < 0 ? NULL : template;
}

FILE *tmpfile(void)
{
    char path[] = "/tmp/tmpfXXXXXX";
    FILE *file;
    int fd = mkstemp(path);
    if (fd < 0)
        return NULL;
    unlink(path);
    file = fdopen(fd, "w+");
    if (!file)
        close(fd);
    return file;
}

char *tmpnam(char *into)
{
    static char own[L_tmpnam];
    char path[] = "/tmp/tmpnXXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return NULL;
    close(fd);
    unlink(path);
    return strcpy(into ? into : own, path);
}

/* The classes of <math.h>, whose macros take them for built in: NaN, infinite, zero, subnormal and normal. */
int __fpclassify(double x)
{
    union { double x; unsigned long long bits; } number = { x };
    int exponent = number.bits >> 52 & 0x7ff;
    if (exponent == 0x7ff)
        return number.bits << 12 ? 0 : 1;
    if (exponent)
        return 4;
    return number.bits << 1 ? 3 : 2;
}

int __fpclassifyf(float x)
{
    union { float x; unsigned bits; } number = { x };
    int exponent = number.bits >> 23 & 0xff;
    if (exponent == 0xff)
        return number.bits << 9 ? 0 : 1;
    if (exponent)
        return 4;
    return number.bits << 1 ? 3 : 2;
}

int __signbit(double x)
{
    union { double x; unsigned long long bits; } number = { x };
    return number.bits >> 63;
}

/* A program cannot start a shell. */
int system(const char *line)
{
    if (!line)
        return 0;
    errno = ENOSYS;
    return -1;
}
