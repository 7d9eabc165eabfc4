// Programs cannot access the members of public classes that are for generated stubs and lrpc's own libraries.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "lrpc/client.h"
#include "lrpc/server.h"

namespace testing_lrpc {
namespace {

template <class Binding>
concept ShowsObject = requires(Binding& binding) {
  binding.object();
};
template <class Binding>
concept OffersCallback = requires(Binding& binding) {
  binding.offer_callback();
};
template <class Context>
concept ShowsImage = requires(Context& context) {
  context.image();
}
|| requires(Context& context) { context.tail(); };
template <class Context>
concept ShowsScratch = requires(Context& context) {
  context.scratch(std::size_t{1});
};
template <class Context>
concept ShowsCallbackPort = requires(Context& context) {
  context.callback_port();
};
template <class Context>
concept CanBePrimed = requires(Context& context) {
  context.done();
}
|| requires(Context& context) { context.end(); };
struct Outcome {
  using Result_ = lrpc::Result<void>;
};
template <class Pending>
concept ShowsCall = requires(Pending& pending) {
  pending.call();
};

TEST(PublicClasses, hide_what_only_stubs_use) {
  EXPECT_FALSE(ShowsObject<lrpc::Binding>);
  EXPECT_FALSE((std::is_constructible_v<lrpc::Binding, std::unique_ptr<lrpc::client::BindingObject>>));
  EXPECT_FALSE(OffersCallback<lrpc::Binding>);
  EXPECT_FALSE(ShowsCall<lrpc::Pending<Outcome>>);
  EXPECT_FALSE(ShowsImage<lrpc::CallContext>);
  EXPECT_FALSE(ShowsScratch<lrpc::CallContext>);
  EXPECT_FALSE(ShowsCallbackPort<lrpc::CallContext>);
  EXPECT_FALSE(CanBePrimed<lrpc::CallContext>);
}

}  // namespace
}  // namespace testing_lrpc
