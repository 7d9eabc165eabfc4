// Growth of a binding's supply of A-stacks (LRPC §5.2): what the client and the server's clerk say to each other about
// a secondary region.
//
// The client asks on the bell: it sends one end of a new socketpair, in which the request already waits. That pair is
// the secondary region's *line*: the answer comes over it, and the region is the client's as long as its end of the
// line is there. So there is no number that could be stale, and whoever dies takes its lines along.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// Secondary regions that a binding may have at a time, and A-stacks in each, at most. The A-stacks of the one in place
/// p have the numbers from p * kMostAStacksInSecondary on, counted from behind those of the primary region.
inline constexpr std::uint16_t kMostSecondaryRegions = 16;
inline constexpr std::uint16_t kMostAStacksInSecondary = 64;

struct GrowthRequest {
  std::uint16_t astack_class = 0;
  std::uint16_t place = 0;  ///< Below kMostSecondaryRegions; the client picks one that it does not use.
  std::uint16_t count = 0;  ///< How many at most.
  friend bool operator==(const GrowthRequest&, const GrowthRequest&) = default;
};

/// Either a region with `count` A-stacks of the class that was asked for, or why there is none.
struct GrowthAnswer {
  std::uint16_t count = 0;  ///< 0: refused.
  Errc refusal = Errc::ok;
  ClosedAside region = {};  ///< Hostile until shim::Region::map() has checked it.
};

// ---- The client's half ----

/// Asks, and returns the client's end of the line. Does not block. timed_out: the bell is full; peer_gone,
/// system_error.
Result<UniqueFd> ask_for_growth(int bell, const GrowthRequest& request);
/// Waits for the answer, at most `patience`; nullopt: there is none yet. bad_message: it makes no sense, and its
/// descriptors are closed; limit_reached: this process was out of descriptors; peer_gone: the clerk has let go of the
/// line, or is as good as gone. An answer with a region is received on a thread of its own. May throw std::bad_alloc.
Result<std::optional<GrowthAnswer>> receive_growth(int line, std::chrono::milliseconds patience,
                                                   const Stranger& server = {});

// ---- The clerk's half; nothing of it waits for the client ----

/// The request that waits in a line, which the client has made: received on a thread of its own. bad_message: there is
/// none, or it makes no sense. May throw std::bad_alloc.
Result<GrowthRequest> take_growth_request(int line, const Stranger& client = {});
/// Grants: `region` is not taken. Errors: system_error, peer_gone.
Status grant_growth(int line, std::uint16_t count, int region);
void refuse_growth(int line, Errc why) noexcept;

// ---- Both ----

/// A class of which the most A-stacks, up to `count`, that make a region of at most `most_bytes`; count 0: not even one
/// does.
[[nodiscard]] AStackClass class_that_fits(AStackClass declared, std::uint16_t count, std::uint64_t most_bytes);

}  // namespace lrpc::shim
