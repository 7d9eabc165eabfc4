// Before 3.21, valgrind does not know pidfd_open(2) and answers ENOSYS, so that no binding can be made under it. Linked
// with --wrap=syscall, this file then returns a descriptor that never becomes readable. That is correct, because the
// peer of a loopback binding is the process itself, which never sees its own death.
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>

extern "C" long __real_syscall(long number, ...);
extern "C" long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...) {
  long argument[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& one : argument) one = va_arg(arguments, long);
  va_end(arguments);
  const long result =
      __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  if (number == SYS_pidfd_open && result < 0 && errno == ENOSYS) return ::eventfd(0, EFD_CLOEXEC);
  return result;
}
