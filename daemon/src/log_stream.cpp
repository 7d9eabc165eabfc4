#include "log_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::daemon {

void LogStream::open_own() noexcept {
  struct stat kind {};
  // A file would be written from its beginning, and waits for nobody who reads.
  if (::fstat(fd_, &kind) != 0 || (!S_ISFIFO(kind.st_mode) && !S_ISCHR(kind.st_mode))) return;
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd_);
  const UniqueFd own(::open(path.data(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own) (void)::dup2(own.get(), fd_);
}

void LogStream::write(std::string_view line) noexcept {
  const std::lock_guard lock(mutex_);
  if (left_out_ > 0) {
    std::array<char, 256> note;
    const int size =
        std::snprintf(note.data(), note.size(), "%s%.100s: %ju lines left out: the standard error did not take them\n",
                      torn_ ? "\n" : "", ::program_invocation_short_name, std::uintmax_t{left_out_});
    if (!put({note.data(), static_cast<std::size_t>(size)})) {
      ++left_out_;
      return;
    }
    left_out_ = 0;
  }
  if (!put(line)) ++left_out_;
}

void LogStream::leave_out() noexcept {
  const std::lock_guard lock(mutex_);
  ++left_out_;
}

/// Standard error is most often others', too: it is not to become one of O_NONBLOCK. What poll(2) calls writable takes
/// a page without waiting, if nobody else writes.
bool LogStream::put(std::string_view text) noexcept {
  const std::size_t whole = text.size();
  while (!text.empty()) {
    pollfd stream{fd_, POLLOUT, 0};
    const bool writable = ::poll(&stream, 1, 0) == 1 && (stream.revents & POLLOUT) != 0;
    const ssize_t written = writable ? ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF)) : -1;
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (text.size() < whole) torn_ = !text.empty();
  return text.empty();
}

}  // namespace lrpc::daemon
