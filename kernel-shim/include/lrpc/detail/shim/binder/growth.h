// Growth of a binding's supply of A-stacks (LRPC §5.2): the messages between the client and the server's clerk about a
// secondary region.
//
// The client asks on the bell: it sends one end of a new socketpair, which already holds the request. That pair is the
// secondary region's *line*. The answer comes over it, and the client has the region as long as its end of the line is
// open. So no number can be stale, and a process that dies closes its lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// The most secondary regions of a binding at a time, and the most A-stacks in each. The A-stacks of the region in
/// place p are numbered from p * kMostAStacksInSecondary on, after all those of the primary region.
inline constexpr std::uint16_t kMostSecondaryRegions = 16;
inline constexpr std::uint16_t kMostAStacksInSecondary = 64;

struct GrowthRequest {
  std::uint16_t astack_class = 0;
  std::uint16_t place = 0;  ///< Below kMostSecondaryRegions; the client picks one that it does not use.
  std::uint16_t count = 0;  ///< How many A-stacks at most.
  friend bool operator==(const GrowthRequest&, const GrowthRequest&) = default;
};

/// A region with `count` A-stacks of the class that was asked for, or the reason why there is none.
struct GrowthAnswer {
  std::uint16_t count = 0;  ///< 0: refused.
  Errc refusal = Errc::ok;
  ClosedAside region = {};  ///< Not to be trusted before Region::map() has checked it.
};

// ---- The client's half ----

/// Asks, and returns the client's end of the line. Does not block. Errors: timed_out (the bell is full), peer_gone,
/// system_error.
Result<UniqueFd> ask_for_growth(int bell, const GrowthRequest& request);
/// Waits for the answer, at most `patience`; nullopt: there is none yet. Errors: bad_message (the answer makes no
/// sense, and its descriptors are closed); limit_reached (this process was out of descriptors); peer_gone (the clerk
/// has closed the line, or counts as gone). An answer with a region is received on a thread of its own. May throw
/// std::bad_alloc.
Result<std::optional<GrowthAnswer>> receive_growth(int line, std::chrono::milliseconds patience,
                                                   const Stranger& server = {});

// ---- The clerk's half: no function waits for the client ----

/// Receives the request from a line, on a thread of its own, because the client has made the line. bad_message: there
/// is no request, or it makes no sense. May throw std::bad_alloc.
Result<GrowthRequest> take_growth_request(int line, const Stranger& client = {});
/// Grants a request. The caller keeps `region`. Errors: system_error, peer_gone.
Status grant_growth(int line, std::uint16_t count, int region);
void refuse_growth(int line, Errc why) noexcept;

// ---- Both ----

/// The class with the largest count, up to `count`, whose region has at most `most_bytes`. Count 0: even one A-stack is
/// too large.
[[nodiscard]] AStackClass class_that_fits(AStackClass declared, std::uint16_t count, std::uint64_t most_bytes);

}  // namespace lrpc::shim
