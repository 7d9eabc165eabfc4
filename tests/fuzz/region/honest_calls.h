// Calls of an honest client to any server. All results must conform to the interface, and nothing may be written behind
// the caller's memory.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "conformance.client.h"
#include "input.h"

namespace lrpc::fuzz {

/// Room for results, followed by a guard area that must not change.
class FencedRoom {
 public:
  explicit FencedRoom(std::size_t size) : memory_(size + kFence, kPost), size_(size) {}
  [[nodiscard]] std::span<std::byte> room() { return std::span(memory_).first(size_); }
  void check(const Buffer& buffer) const {
    require(buffer.size() <= buffer.capacity(), "a result of bytes fits its buffer");
    require(std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(size_), memory_.end(),
                        [](std::byte byte) { return byte == kPost; }),
            "nothing is written behind the caller's buffer");
  }

 private:
  static constexpr std::size_t kFence = 64;
  static constexpr std::byte kPost{0xf5};
  std::vector<std::byte> memory_;
  std::size_t size_;
};

/// Makes one call of the procedure that `which` chooses. Returns how it ended.
inline Errc call_one(Conformance::Client& client, std::uint8_t which) {
  namespace layout = Conformance::layout;
  switch (which % 16) {
    case 0: return client.Null().code();
    case 1: return client.Add(1, 2).code();
    case 2: return client.Flip(true).code();
    case 3: {
      const auto next = client.NextColour(Conformance::Colour::Red);
      require(!next || layout::is_Colour(*next), "an enum's result is one of its values");
      return next.code();
    }
    case 4: {
      const auto halved = client.Halve(100, -10);
      require(!halved || (layout::is_Percent(halved->half) && layout::is_Signed(halved->negated)),
              "results are in their ranges");
      return halved.code();
    }
    case 5: {
      Conformance::Shape shape{
          .name = "s", .colour = Conformance::Colour::Blue, .corners = {}, .filled = true, .share = 7};
      const Conformance::Shape before = shape;
      const auto mirrored = client.Mirror(shape);
      require(layout::is_Shape(shape) && shape.name.size() <= 32, "a record conforms");
      require(mirrored || shape == before, "a call that failed touches no output");
      return mirrored.code();
    }
    case 6: return client.Integers(1, 2, 3, 4, 5, 6, 7, 8).code();
    case 7: {
      const auto greeting = client.Greet("you");
      require(!greeting || greeting->view().size() <= 300, "a text keeps to its bound");
      return greeting.code();
    }
    case 8: {
      const auto both = client.Concatenate(std::string(2000, 'a'), "b");
      require(!both || both->view().size() <= 4000, "a long text keeps to its bound");
      return both.code();
    }
    case 9: {
      FencedRoom room(5000);
      Buffer data{room.room()};
      const Errc code = client.Fill(5000, 1, data).code();
      room.check(data);
      return code;
    }
    case 10: {
      FencedRoom room(3000);
      Buffer data(room.room(), 3000);
      const Errc code = client.Reverse(data).code();
      room.check(data);
      return code;
    }
    case 11: {
      FencedRoom room(16);
      Buffer copy{room.room()};
      const Errc code = client.SmallBytes(room.room(), copy).code();
      room.check(copy);
      return code;
    }
    case 12: {
      const auto checked = client.Check(1);
      const auto* big = checked.raised<Conformance::TooBig>();
      const auto* refused = checked.raised<Conformance::Refused>();
      require((checked.code() == Errc::raised) == (big != nullptr || refused != nullptr),
              "an error that was raised is one that the procedure declares");
      require(big == nullptr || big->what.view().size() <= 64, "an error's text keeps to its bound");
      require(refused == nullptr || refused->reason.view().size() <= 128, "an error's text keeps to its bound");
      return checked.code();
    }
    case 13: {
      std::array<std::byte, 200> data{};
      return client.BigInOut(data).code();
    }
    case 14: {
      const auto opened = client.Open(1);
      if (!opened) return opened.code();
      (void)client.Advance(*opened, 1);
      return client.Shut(*opened).code();
    }
    default: return client.Floats(1, 2).code();
  }
}

/// The same. If the call fails, its error must exist.
inline void call_honestly(Conformance::Client& client, std::uint8_t which) {
  require(describe(call_one(client, which)) != describe(static_cast<Errc>(0xffff)), "an error has a name");
}

}  // namespace lrpc::fuzz
