// Descriptors whose close(2) waits, which hostile peers send to others.
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
  lingering,  ///< A TCP socket that lingers, with more unsent data than the other end takes.
  laden,      ///< An AF_UNIX socket with such a socket in its receive queue.
  stuck,      ///< A file of a FUSE file system whose daemon never answers FLUSH.
};

/// The file system for Slow::stuck: one file, whose close(2) waits until this object is destroyed or released. A
/// process that waits there cannot even be killed. So destroy or release it before you end processes that have the file
/// or may have received it.
class StuckFile {
 public:
  /// Needs to be root. Precondition: that of Child::spawn(). Errors: not_supported (there is no FUSE here, and why).
  static Result<std::unique_ptr<StuckFile>> make(const Seat& seat);
  ~StuckFile();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Ends all waits for the file. A process that was forked since may call it, too.
  void release() const noexcept;

 private:
  StuckFile() = default;
  std::string path_;
  UniqueFd released_;
  Child daemon_;
};

/// Makes descriptors of one kind.
class SlowThings {
 public:
  /// `stuck_path`: StuckFile::path() for Slow::stuck, otherwise ignored.
  SlowThings(Slow kind, const std::string& stuck_path);
  /// Passes a descriptor to `send`: for Slow::stuck always the same file; otherwise a new socket, of which the receiver
  /// then has the last copy, and only the last 64 sockets are slow to close.
  void leave(const std::function<void(int fd)>& send);

 private:
  const Slow kind_;
  UniqueFd stuck_;                                    ///< Never closed: close(2) would wait here, too.
  std::deque<std::pair<UniqueFd, UniqueFd>> others_;  ///< The other ends of the sockets that were sent.
};

}  // namespace lrpc::bench
