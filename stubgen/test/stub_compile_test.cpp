// Many generated headers compile in one source, where a types header comes twice; stubs work whatever the names are.
#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>
#include <utility>

#include "callbacks.client.h"
#include "callbacks.server.h"
#include "files.types.h"
#include "minimal.client.h"
#include "minimal.server.h"
#include "names.client.h"
#include "names.server.h"
#include "oneway.client.h"
#include "oneway.server.h"
#include "options.client.h"
#include "options.server.h"

namespace {

/// Uses every stub of Names, whose parameters have names that stubs use for their own variables.
struct NamesServer {
  struct option {};
  lrpc::Result<Names::LocalsResults, Names::error> Locals(lrpc::CallContext& /*context*/, std::int32_t image,
                                                          std::int32_t& call, std::span<const std::byte> /*status*/,
                                                          const lrpc::String<10>& /*binding*/, option& /*context*/,
                                                          const std::array<std::byte, 4>& /*impl*/,
                                                          Names::type /*layout*/, const Names::version& signature,
                                                          lrpc::Buffer& raised) {
    if (image < 0) return lrpc::raise(Names::error{.status = image, .error_code = 1, .code = Names::type::in});
    call += image;
    (void)raised.resize(3);
    return Names::LocalsResults{.outcome = image, .tail = 7, .results = signature};
  }
  lrpc::Result<Names::DerivedResults> Derived(
      lrpc::CallContext& /*context*/, std::span<const std::byte> data, std::int32_t data_copy, std::int32_t data_found,
      std::int32_t data_copied, std::int32_t& x, std::int32_t x_copy, const std::array<Names::type, 2>& /*i*/,
      const std::array<std::array<Names::type, 2>, 2>& /*j*/, const std::array<bool, 2>& /*k*/, std::int32_t in,
      std::int32_t out, std::int32_t inout, option& /*file*/, std::int32_t file_handle,
      // NOLINTNEXTLINE(performance-unnecessary-value-param): so the stub gives it
      std::shared_ptr<option> file_object, const lrpc::String<9>& text, lrpc::String<9>& text_copy,
      lrpc::Buffer& copied, lrpc::Buffer& second) {
    x = data_copy + data_found + data_copied + x_copy + in + out + inout + file_handle +
        static_cast<std::int32_t>(data.size());
    (void)copied.resize(file_object != nullptr ? 1 : 0);
    (void)second.resize(2);
    text_copy = text;
    return Names::DerivedResults{.Outcome = {true, false, true}, .second_found = 5};
  }
  std::int32_t export_name(lrpc::CallContext& /*context*/, std::int32_t server, const lrpc::String<5>& name,
                           std::int32_t options, std::int32_t socket) {
    return server + static_cast<std::int32_t>(name.size()) + options + socket;
  }
  std::int32_t raise(lrpc::CallContext& /*context*/, std::int32_t move) { return move; }
  lrpc::Result<std::int32_t, Names::error> Errc(lrpc::CallContext& /*context*/) { return 1; }
  lrpc::Result<std::int32_t, Names::error> procedure(lrpc::CallContext& /*context*/, std::int32_t record,
                                                     std::int32_t handle, std::int32_t may_block, std::int32_t raises) {
    return record + handle + may_block + raises;
  }
};
static_assert(Names::Implementation<NamesServer>);

struct WrongSignature : NamesServer {
  std::int32_t raise(lrpc::CallContext& context);
};
static_assert(!Names::signature_::raise<WrongSignature> && !Names::Implementation<WrongSignature>);
static_assert(Names::signature_::procedure<WrongSignature>);

/// A server whose procedure `raise`, which is declared with an int32, takes a Move.
template <class Move>
struct MoveServer : NamesServer {
  std::int32_t raise(lrpc::CallContext& context, Move move);
};
struct Wrapped {
  Wrapped(std::int32_t value);  // NOLINT: implicit by design
};
static_assert(Names::Implementation<MoveServer<std::int32_t>> && Names::Implementation<MoveServer<std::int64_t>> &&
              Names::Implementation<MoveServer<const std::int64_t&>> && Names::Implementation<MoveServer<Wrapped>> &&
              Names::Implementation<MoveServer<double>>);
static_assert(!Names::Implementation<MoveServer<std::int16_t>> && !Names::Implementation<MoveServer<std::uint64_t>> &&
              !Names::Implementation<MoveServer<const std::int16_t&>> && !Names::Implementation<MoveServer<float>> &&
              !Names::Implementation<MoveServer<bool>>);

struct NarrowConst : NamesServer {
  std::int32_t raise(lrpc::CallContext& context, std::int16_t move) const noexcept;
};
struct NarrowStatic : NamesServer {
  static std::int32_t raise(lrpc::CallContext& context, std::int16_t move) noexcept;
};
struct NarrowReference : NamesServer {
  std::int32_t raise(lrpc::CallContext& context, std::int16_t move) const&;
};
struct NarrowWithDefault : NamesServer {
  std::int32_t raise(lrpc::CallContext& context, std::int16_t move, bool more = false);
};
static_assert(!Names::Implementation<NarrowConst> && !Names::Implementation<NarrowStatic> &&
              !Names::Implementation<NarrowReference> && !Names::Implementation<NarrowWithDefault>);

// What has no single type is called as it is.
struct Overloaded : NamesServer {
  using NamesServer::raise;
  std::int32_t raise(std::int16_t move);
};
struct Generic : NamesServer {
  std::int32_t raise(lrpc::CallContext& context, std::integral auto move);
};
static_assert(Names::Implementation<Overloaded> && Names::Implementation<Generic>);

template <class Returned>
struct NullServer {
  Returned Null(lrpc::CallContext& context);
};
static_assert(Minimal::Implementation<NullServer<void>> && Minimal::Implementation<NullServer<lrpc::Status>> &&
              Minimal::Implementation<NullServer<lrpc::Errc>>);
static_assert(!Minimal::Implementation<NullServer<int>> && !Minimal::Implementation<NullServer<lrpc::Result<int>>>);

static_assert(a::b::Options::kPdl.procedures.size() == 6);
static_assert(std::is_nothrow_move_constructible_v<Minimal::Client>);

TEST(GeneratedTypes, take_initializers_for_some_of_their_fields) {
  const Names::version some{.interface = 4};  // nor may a compiler warn of those that are left out
  EXPECT_EQ(some.interface, 4);
  EXPECT_TRUE(some.to.empty());
}

TEST(GeneratedStubs, compile_and_run_whatever_their_parameters_are_called) {
  NamesServer implementation;
  lrpc::Server server;
  ASSERT_TRUE(Names::export_to(server, "names", implementation));
  auto client = Names::Client::import("names", {.server = &server});
  ASSERT_TRUE(client);
  auto& context = client->binding().object().context();
  const auto handle = context.grant<Names::option>(std::make_shared<NamesServer::option>());
  const auto other = context.grant<Names::option>(std::make_shared<NamesServer::option>());

  std::int32_t call = 1;
  std::array<std::byte, 10> memory{};
  lrpc::Buffer raised(memory);
  const Names::version version{.interface = 4, .value = Names::type::out, .from = true, .to = "abcd", .out = 9};
  auto locals = client->Locals(2, call, {}, "name", handle, {}, Names::type::in, version, raised);
  ASSERT_TRUE(locals);
  EXPECT_EQ(call, 3);
  EXPECT_EQ(raised.size(), 3U);
  EXPECT_EQ(locals->results, version);
  locals = client->Locals(-2, call, {}, "name", handle, {}, Names::type::in, version, raised);
  ASSERT_NE(locals.raised<Names::error>(), nullptr);
  EXPECT_EQ(locals.raised<Names::error>()->status, -2);
  EXPECT_EQ(call, 3);

  std::int32_t x = 0;
  lrpc::String<9> text_copy;
  std::array<std::byte, 10> more{};
  lrpc::Buffer copied(memory);
  lrpc::Buffer second(more);
  constexpr Names::type kIn = Names::type::in;
  const auto derived = client->Derived({}, 1, 2, 3, x, 4, {kIn, kIn}, {{{kIn, kIn}, {kIn, kIn}}}, {true, false}, 5, 6,
                                       7, handle, 8, other, "text", text_copy, copied, second);
  ASSERT_TRUE(derived);
  EXPECT_EQ(x, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
  EXPECT_EQ(text_copy.view(), "text");
  EXPECT_EQ(second.size(), 2U);
  EXPECT_EQ(derived->Outcome, (std::array<bool, 3>{true, false, true}));
  EXPECT_EQ(*client->export_name(1, "ab", 2, 3), 8);
  EXPECT_EQ(*client->raise(5), 5);
  EXPECT_EQ(*client->procedure(1, 2, 3, 4), 10);
}

namespace callbacks = c::d::Callbacks;

struct Copier {
  lrpc::Result<std::uint64_t, callbacks::Cancelled> Copy(lrpc::CallContext& context, const lrpc::String<64>& name) {
    auto client = callbacks::callback(context);
    if (!client) return client.error();
    for (std::uint64_t done = 1; done <= 3; ++done) {
      const auto told = (*client)->Progress({.done = done, .total = 3, .last = done == 3});
      if (const auto* cancelled = told.raised<callbacks::Cancelled>()) return lrpc::raise(*cancelled);
      if (!told) return told.error();
    }
    const auto reply = (*client)->Confirm(name.view(), {true, false, true});
    if (!reply) return reply.error();
    if (!(*client)->Stop({"one", "two"})) return lrpc::Errc::call_failed;
    return reply->answer == callbacks::Answer::Yes && reply->sure ? 3U : 0U;
  }
  void Stop(lrpc::CallContext&) {}
};

struct Watcher {
  std::uint64_t cancel_at = 100;
  std::string asked{}, stopped{};
  lrpc::Result<void, callbacks::Cancelled> Progress(lrpc::CallContext&, const callbacks::Step& step) {
    if (step.done == cancel_at) return lrpc::raise(callbacks::Cancelled{.at = step.done});
    return {};
  }
  callbacks::Callback::ConfirmResults Confirm(lrpc::CallContext&, const lrpc::String<200>& question,
                                              const std::array<bool, 3>& flags) {
    asked = question.view();
    return {.answer = callbacks::Answer::Yes, .sure = flags == std::array{true, false, true}};
  }
  void Stop(lrpc::CallContext&, const std::array<lrpc::String<10>, 2>& reasons) {
    stopped = std::string(reasons[0].view()) + std::string(reasons[1].view());
  }
};
static_assert(callbacks::Callback::Implementation<Watcher> && !callbacks::Callback::Implementation<Copier>);
static_assert(callbacks::kPdl.callback == &callbacks::Callback::kPdl && Minimal::kPdl.callback == nullptr);

// A callback is bound to over a socket only, never by a name.
template <class Client>
concept BindsByName = requires {
  Client::import("name");
};
template <class Client>
concept CallsGroups = requires(Client client) {
  client.all();
};
static_assert(BindsByName<callbacks::Client> && CallsGroups<callbacks::Client>);
static_assert(!BindsByName<callbacks::Callback::Client> && !CallsGroups<callbacks::Callback::Client>);

TEST(GeneratedStubs, call_back_through_an_interface_of_its_own) {
  Copier copier;
  Watcher watcher;
  lrpc::Server server;
  lrpc::Server client_domain;
  ASSERT_TRUE(callbacks::export_to(server, "copier", copier));
  auto client = callbacks::Client::import("copier", {.server = &server});
  ASSERT_TRUE(client);
  EXPECT_EQ(client->Copy("nobody listens").code(), lrpc::Errc::name_unknown);
  ASSERT_TRUE(client->serve_callbacks(client_domain, watcher));
  client->binding().object().context().callback_port().server = &client_domain;
  EXPECT_EQ(client->Copy("sure?").value(), 3U);
  EXPECT_EQ(watcher.asked, "sure?");
  EXPECT_EQ(watcher.stopped, "onetwo");
  watcher.cancel_at = 2;
  const auto cancelled = client->Copy("sure?");
  ASSERT_NE(cancelled.raised<callbacks::Cancelled>(), nullptr);
  EXPECT_EQ(cancelled.raised<callbacks::Cancelled>()->at, 2U);
}

}  // namespace
