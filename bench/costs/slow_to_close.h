// Descriptors whose close(2) waits, for hostile peers to leave to others.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/child.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

enum class Slow : std::uint8_t {
  lingering,  ///< A TCP socket that lingers, with more to send than its other end takes.
  laden,      ///< An AF_UNIX socket in whose queue such a socket lies.
  stuck,      ///< A file of a FUSE file system whose daemon answers no FLUSH.
};

/// The file system for Slow::stuck: one file, which waits for as long as this lives, or until it is released. A process
/// that waits for it cannot even be killed. So it is to be gone first: before processes that have, or have got, the
/// file.
class StuckFile {
 public:
  /// Needs to be root. Precondition: that of Child::spawn(). Errors: not_supported (there is no FUSE here, and why).
  static Result<std::unique_ptr<StuckFile>> make(const Seat& seat);
  StuckFile(const StuckFile&) = delete;
  StuckFile& operator=(const StuckFile&) = delete;
  ~StuckFile();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Nobody waits for it any more. Also by a process that was forked since.
  void release() const noexcept;

 private:
  StuckFile() = default;
  std::string path_;
  UniqueFd released_;
  Child daemon_;
};

/// Makes things of one kind.
class SlowThings {
 public:
  /// `stuck_path`: StuckFile::path(), if it is that kind; else anything.
  SlowThings(Slow kind, const std::string& stuck_path);
  /// Lets `send` send one. Its receiver has the last copy, but of the stuck file. The last 64 of them are slow.
  void leave(const std::function<void(int fd)>& send);

 private:
  const Slow kind_;
  UniqueFd stuck_;                                    ///< Open for ever: to close it takes as long for us.
  std::deque<std::pair<UniqueFd, UniqueFd>> others_;  ///< The other ends of what was sent.
};

}  // namespace lrpc::bench
