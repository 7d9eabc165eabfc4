// An implementation of types.lrpc that returns its arguments, and checks that each of them conforms to its declaration.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "types.client.h"
#include "types.server.h"

namespace lrpc_test {

namespace T = conformance::Types;

/// True if each value in it is valid for its type. Checks the bytes of a bool, because reading an invalid bool is
/// undefined.
inline bool good(const bool& value) {
  unsigned char byte = 0;
  std::memcpy(&byte, &value, 1);
  return byte <= 1;
}
inline bool good(T::Small value) { return value == T::Small::Zero || value == T::Small::One || value == T::Small::Two; }
inline bool good(T::Sparse value) {
  return value == T::Sparse::Negative || value == T::Sparse::None || value == T::Sparse::Large;
}
inline bool good(T::Wide value) { return value == T::Wide::First || value == T::Wide::Last; }
inline bool good(T::Low value) { return value == T::Low::Lowest || value == T::Low::Next; }
inline bool good_month(T::Month month) { return month >= 1 && month <= 12; }
inline bool good(const T::Inner& inner) {
  return good(inner.flag) && inner.share <= 100 && good_month(inner.when) && good(inner.kind);
}
template <std::size_t N>
inline bool good(const lrpc::String<N>& text) {
  return text.size() <= N;
}
template <class Element, std::size_t N>
inline bool good(const std::array<Element, N>& all) {
  return std::all_of(all.begin(), all.end(), [](const Element& element) { return good(element); });
}
inline bool good(const T::Outer& outer) {
  return good(outer.inner) && good(outer.label) && good(outer.names) && good(outer.flags) &&
         std::all_of(outer.months.begin(), outer.months.end(), good_month);
}

class TypesServer {
 public:
  struct Session {
    std::uint32_t limit = 0;
  };
  struct Cursor {};

  T::IntegersResults Integers(lrpc::CallContext& /*c*/, std::int8_t a, std::int16_t b, std::int32_t c, std::int64_t d,
                              std::uint8_t e, std::uint16_t f, std::uint32_t g, std::uint64_t h) {
    return {.a2 = a, .b2 = b, .c2 = c, .d2 = d, .e2 = e, .f2 = f, .g2 = g, .h2 = h};
  }
  float Floats(lrpc::CallContext& /*c*/, float a, double& b) {
    b = -b;
    return a * 2;
  }
  T::BitsResults Bits(lrpc::CallContext& /*c*/, bool a, bool& b, std::byte c) {
    EXPECT_TRUE(good(a) && good(b));
    b = !b;
    return {.d = a, .e = c};
  }
  T::EnumsResults Enums(lrpc::CallContext& /*c*/, T::Small a, T::Sparse& b, T::Wide c) {
    EXPECT_TRUE(good(a) && good(b) && good(c));
    b = bad_result ? static_cast<T::Sparse>(1) : T::Sparse::Large;
    return {.d = a, .e = T::Low::Lowest};
  }
  T::Percent Ranges(lrpc::CallContext& /*c*/, T::Percent a, T::Month& b, T::Below c, T::Any /*d*/, T::Quarter e) {
    EXPECT_TRUE(a <= 100 && good_month(b) && c < 0 && e >= 1 && e <= 4);
    b = 13 - b;
    return bad_result ? T::Percent{101} : a;
  }
  T::Outer Records(lrpc::CallContext& /*c*/, const T::Outer& a, T::Outer& b) {
    EXPECT_TRUE(good(a) && good(b));
    T::Outer result = b;
    b = a;
    if (bad_result) b.inner[1].share = 200;
    return result;
  }
  T::ArraysResults Arrays(lrpc::CallContext& context, const std::array<std::int32_t, 4>& a,
                          std::array<std::array<std::uint16_t, 3>, 2>& b, const std::array<T::Month, 3>& c,
                          const std::array<std::array<T::Small, 2>, 2>& d, const std::array<bool, 3>& e,
                          const std::array<T::Label, 2>& f) {
    EXPECT_TRUE(std::all_of(c.begin(), c.end(), good_month) && good(d) && good(e) && good(f));
    b[1][2] = static_cast<std::uint16_t>(a[3]);
    return {.g = {c[0], c[1]}, .h = c, .i = {f[1], f[0]}, .j = context.grant<T::Session>(std::make_shared<Session>())};
  }
  std::uint32_t InPlace(lrpc::CallContext& context, const std::array<std::uint32_t, 8>& a,
                        std::array<std::byte, 16>& b) {
    EXPECT_EQ(static_cast<const void*>(&a), static_cast<const void*>(context.image()))
        << "an uninterpreted array was copied";
    std::uint32_t sum = 0;
    for (const std::uint32_t value : a) sum += value;
    b.fill(std::byte{9});
    return sum;
  }
  T::TextResults Text(lrpc::CallContext& /*c*/, const lrpc::String<100>& a, lrpc::String<5000>& b, const T::Label& c) {
    EXPECT_TRUE(good(a) && good(b) && good(c));
    T::TextResults results{.d = lrpc::String<3000>(b.view().substr(0, 3000)), .e = c};
    b = lrpc::String<5000>(a.view());
    return results;
  }
  lrpc::String<10> Upper(lrpc::CallContext& /*c*/, const lrpc::String<10>& a) {
    std::string text = a.str();
    for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
    return lrpc::String<10>(text);
  }
  lrpc::Result<std::uint64_t> Bytes(lrpc::CallContext& context, std::span<const std::byte> a,
                                    std::span<const std::byte> b, lrpc::Buffer& c, lrpc::Buffer& d, lrpc::Buffer& e) {
    EXPECT_TRUE(a.size() <= 100 && b.size() <= 4000 && c.size() <= 2000 && c.capacity() == 2000);
    EXPECT_TRUE(private_memory(context, a) && private_memory(context, b) && private_memory(context, c.contents()));
    const std::uint64_t length = a.size() + b.size() + c.size();
    if (bad_result) {
      d = lrpc::Buffer(elsewhere, 10);
    } else {
      EXPECT_TRUE(d.assign(a.first(std::min<std::size_t>(a.size(), 50))));
    }
    EXPECT_TRUE(e.assign(b));
    EXPECT_TRUE(c.assign(b.first(std::min<std::size_t>(b.size(), 2000))));
    return length;
  }
  void Echo(lrpc::CallContext& /*c*/, std::span<const std::byte> a, lrpc::Buffer& b) { EXPECT_TRUE(b.assign(a)); }
  void BytesInPlace(lrpc::CallContext& context, std::span<const std::byte> a, lrpc::Buffer& b) {
    EXPECT_TRUE(a.size() <= 4000 && b.size() <= 4000 && b.capacity() == 4000);
    EXPECT_FALSE(!a.empty() && private_memory(context, a));
    EXPECT_TRUE(b.assign(a));
  }
  T::OutParametersResults OutParameters(lrpc::CallContext& /*c*/, std::int32_t a, lrpc::Buffer& c) {
    EXPECT_TRUE(c.resize(4));
    std::memcpy(c.data(), &a, 4);
    return {.d = a + 1, .b = a + 2};
  }
  lrpc::Result<T::Session, T::Busy, T::Refused> Start(lrpc::CallContext& context, std::uint32_t limit) {
    if (limit == 0) return lrpc::raise(T::Busy{});
    if (limit > 1000) return lrpc::raise(refusal);
    return context.grant<T::Session>(std::make_shared<Session>(Session{limit}));
  }
  std::uint32_t Count(lrpc::CallContext& /*c*/, Session& session) { return session.limit; }
  T::Session Swap(lrpc::CallContext& context, std::shared_ptr<Session> from, Cursor& /*cursor*/) {
    return context.grant<T::Session>(std::move(from));
  }
  T::Cursor MakeCursor(lrpc::CallContext& context, Session& /*session*/) {
    return context.grant<T::Cursor>(std::make_shared<Cursor>());
  }
  std::uint32_t Join(lrpc::CallContext& /*c*/, const std::shared_ptr<Cursor>& /*cursor*/,
                     const std::shared_ptr<Session>& first, const std::shared_ptr<Session>& second) {
    return first->limit + second->limit;
  }
  lrpc::Result<void, T::Busy> Fail(lrpc::CallContext& /*c*/) { return lrpc::raise(T::Busy{}); }
  void Throw(lrpc::CallContext& /*c*/) { throw std::runtime_error("escapes"); }

  bool bad_result = false;
  T::Refused refusal{.why = "too many", .code = 50, .at = {}};
  std::array<std::byte, 10> elsewhere{};

 private:
  /// True if none of `bytes` is on the A-stack.
  static bool private_memory(lrpc::CallContext& context, std::span<const std::byte> bytes) {
    const auto outside = [&](std::span<const std::byte> shared) {
      return bytes.empty() || shared.empty() || bytes.data() >= shared.data() + shared.size() ||
             bytes.data() + bytes.size() <= shared.data();
    };
    return outside(context.image_bytes(1484)) && outside(context.tail_bytes());
  }
};
static_assert(T::Implementation<TypesServer>);

/// A server and a client bound to it.
class Bound : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(T::export_to(server_, "types", types_));
    auto imported = T::Client::import("types", {.server = &server_});
    ASSERT_TRUE(imported);
    client_ = std::make_unique<T::Client>(std::move(*imported));
  }
  T::Client& client() { return *client_; }
  lrpc::client::BindingObject& binding() { return client_->binding().object(); }

  TypesServer types_;
  lrpc::Server server_;
  std::unique_ptr<T::Client> client_;
};

/// An Outer in which every field differs from its default.
inline T::Outer sample(std::uint8_t seed) {
  T::Outer outer;
  outer.tag = seed;
  outer.inner = {T::Inner{.flag = true, .share = 99, .when = 12, .kind = T::Sparse::Negative},
                 T::Inner{.flag = false, .share = 1, .when = 6, .kind = T::Sparse::Large}};
  outer.points = {T::Point{.x = 1.5F, .y = -2.5}, T::Point{.x = 3.0F, .y = 4.0}};
  outer.label = "thirteen long";
  outer.names = {"one", "", "twenty characters ok"};
  outer.grid = {{{1, 2, 3}, {4, 5, seed}}};
  outer.months = {1, 2, 3};
  outer.block.fill(std::byte{seed});
  outer.flags = {true, false, true, false, true};
  outer.last = static_cast<std::uint8_t>(seed + 1);
  return outer;
}

}  // namespace lrpc_test
