// A program's hooks for the way back to a client. They run while the server ends the client's binding.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "lrpc/server.h"

#include "chatter_service.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace testing_lrpc {
namespace {

/// Calls its clients back over a binding with a hook.
class HookedService : public ChatterService {
 public:
  lrpc::Result<std::uint64_t> Sum(CallContext& context, std::uint32_t number) {
    lrpc::ImportOptions options = patient();
    options.on_revoked = [this, id = context.binding_id()] { on_revoked(id); };
    auto back = Chatter::callback(context, options);
    if (!back) return back.error();
    return (*back)->Double(number);
  }

  std::function<void(std::uint64_t binding_id)> on_revoked;
};

class CallbackHooks : public testing::Test {
 protected:
  /// Makes a client that was called back and whose domain then ended, so that the hook runs.
  void start(std::function<void(std::uint64_t binding_id)> hook) {
    service_.on_revoked = [this, hook = std::move(hook)](std::uint64_t binding_id) {
      begun_ = true;
      hook(binding_id);
      ended_ = true;
    };
    auto own = std::make_unique<lrpc::Server>();
    auto bound = another();
    ASSERT_TRUE(bound) << bound.error().message();
    client_ = std::make_unique<Chatter::Client>(*std::move(bound));
    ASSERT_TRUE(client_->serve_callbacks(*own, listener_));
    ASSERT_EQ(client_->Sum(4).value(), 8U);
    own.reset();
    ASSERT_TRUE(eventually([&] { return begun_.load(); }));
  }
  lrpc::Result<Chatter::Client> another() {
    auto ends = lrpc::make_socket_pair();
    if (!ends) return ends.error();
    if (auto served = Chatter::serve_over(*server_, std::move(ends->first), service_); !served) return served.error();
    return Chatter::Client::import_over(std::move(ends->second));
  }

  /// Destroys the server while a hook runs that then ends the client's binding.
  void destroy_server_during_hook(bool client_has_gone) {
    auto other = another();
    ASSERT_TRUE(other) << other.error().message();
    std::atomic<bool> go_on{false};
    start([&, server = server_.get()](std::uint64_t binding_id) {
      while (!go_on) std::this_thread::yield();
      server->end_binding(binding_id);
    });
    if (client_has_gone) {
      client_.reset();
      EXPECT_TRUE(eventually([&] { return server_->statistics().bindings == 1; }));
    }
    std::thread destroys([this] { server_.reset(); });
    const int bell = lrpc::detail::StubAccess::object(other->binding()).bell();
    EXPECT_TRUE(eventually([&] { return lrpc::shim::hung_up(bell); })) << "its destructor has begun";
    EXPECT_FALSE(ended_);
    go_on = true;
    destroys.join();
    EXPECT_TRUE(ended_) << "its destructor has waited";
  }

  HookedService service_;
  ChatterListener listener_;
  std::atomic<bool> begun_{false};
  std::atomic<bool> ended_{false};
  std::unique_ptr<lrpc::Server> server_ = std::make_unique<lrpc::Server>();
  std::unique_ptr<Chatter::Client> client_;
};

TEST_F(CallbackHooks, may_end_the_clients_binding_while_the_clerk_ends_it) {
  start([this](std::uint64_t binding_id) {
    while (server_->statistics().bindings != 0) std::this_thread::yield();  // until the clerk ends it, or has ended it
    server_->end_binding(binding_id);
  });
  client_.reset();
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(CallbackHooks, that_take_their_time_keep_no_other_client_waiting) {
  std::atomic<bool> go_on{false};
  start([&](std::uint64_t) {
    while (!go_on) std::this_thread::yield();
  });
  client_.reset();
  EXPECT_TRUE(eventually([&] { return server_->statistics().bindings == 0; }));
  auto next = another();
  EXPECT_TRUE(next && next->Ping());
  go_on = true;
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(CallbackHooks, that_take_their_time_let_a_client_that_has_gone_count_for_its_user) {
  server_ = std::make_unique<lrpc::Server>(lrpc::ServerOptions{.max_bindings_per_user = 1});
  std::atomic<bool> go_on{false};
  start([&](std::uint64_t) {
    while (!go_on) std::this_thread::yield();
  });
  client_.reset();
  EXPECT_TRUE(eventually([&] { return server_->statistics().bindings == 0; }));
  EXPECT_EQ(another().code(), Errc::limit_reached) << "the way back to it is still open";
  go_on = true;
  EXPECT_TRUE(eventually([&] { return another().has_value(); }));
}

TEST_F(CallbackHooks, may_end_a_binding_that_has_ended_while_the_server_is_destroyed) {
  destroy_server_during_hook(true);
}

TEST_F(CallbackHooks, may_end_a_living_binding_while_the_server_is_destroyed) { destroy_server_during_hook(false); }

}  // namespace
}  // namespace testing_lrpc
