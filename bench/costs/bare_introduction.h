// The floor of a bind: a third process introduces a client to a server with as few system calls as possible, without
// the checks, limits and accounts that a nameserver and two domains that distrust each other need.
#pragma once

#include <sys/un.h>

#include <memory>

#include "core/child.h"
#include "core/placement.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

class BareIntroduction {
 public:
  /// Starts the introducer and the server, each a process at `seat`.
  static Result<std::unique_ptr<BareIntroduction>> start(const Seat& seat);

  /// What the client then has: the mapped region and its end of the bell.
  class Introduced {
   public:
    Introduced(void* region, UniqueFd bell) noexcept : region_(region), bell_(std::move(bell)) {}
    ~Introduced();

   private:
    void* region_;
    UniqueFd bell_;
  };
  /// Connects, asks, and waits for the answer, which the introducer sends once the server has mapped the region.
  [[nodiscard]] Result<std::unique_ptr<Introduced>> introduce() const;

 private:
  BareIntroduction() = default;
  sockaddr_un address_{};
  socklen_t address_size_ = 0;
  Child introducer_;
  Child server_;
};

}  // namespace lrpc::bench
