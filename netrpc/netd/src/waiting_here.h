// Which threads wait for another host's answer. The engine lets them receive meanwhile: a command that they receive
// must not run in them, for it could delay their return.
#pragma once

namespace lrpc::netd {

/// For as long as it lives, its thread waits.
class WaitingHere {
 public:
  WaitingHere() noexcept { ++depth_; }
  WaitingHere(const WaitingHere&) = delete;
  WaitingHere& operator=(const WaitingHere&) = delete;
  ~WaitingHere() { --depth_; }
  [[nodiscard]] static bool any() noexcept { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace lrpc::netd
