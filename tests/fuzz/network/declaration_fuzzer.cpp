// Attacks what lrpc-netd makes of a client's declaration (BindDeclared), with which it converts values to XDR and back.
// The text is arbitrary, or an interface that the input makes up. Values of an accepted text's types mean the same on
// both sides, and are no longer than promised. A refusal says why, in few words. The length of the text bounds the
// work.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "declarations.h"
#include "input.h"
#include "lrpc/stubgen/layout/compile.h"
#include "xdr_values.h"

namespace lrpc::sun {
namespace {

using fuzz::Input;
using fuzz::require;
using stubgen::Procedure;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Makes an interface with nested types, some of which do not exist.
class Maker {
 public:
  explicit Maker(Input& input) : input_(input) {}
  std::string make() {
    std::string text = "interface Made version 1.0 {\n";
    for (std::size_t count = input_.byte() % 6; count > 0; --count) text += declaration();
    for (std::size_t count = 1 + input_.byte() % 4U; count > 0; --count) text += procedure();
    return text + "}\n";
  }

 private:
  std::string number(unsigned most) { return std::to_string(input_.byte() % most); }
  std::string type() {
    constexpr std::array<const char*, 13> kPlain{"int8",   "uint8", "int16", "uint16",  "int32",   "uint32",   "int64",
                                                 "uint64", "bool",  "byte",  "float32", "float64", "string<5>"};
    const std::uint8_t how = input_.byte();
    std::string made =
        how < 0xa0 || declared_ == 0 ? kPlain[how % kPlain.size()] : "T" + std::to_string(how % declared_);
    for (std::size_t i = input_.byte() % 8; i < 2; ++i) made += "[" + number(5) + "]";
    return made;
  }
  std::string fields() {
    std::string all;
    for (std::size_t count = input_.byte() % 5; count > 0; --count)
      all += "f" + std::to_string(count) + ": " + type() + "; ";
    return all;
  }
  std::string declaration() {
    const std::string name = "T" + std::to_string(declared_++);
    switch (input_.byte() % 5) {
      case 0: return "enum " + name + " : uint8 { A" + name + " = " + number(3) + ", B" + name + " = 200 }\n";
      case 1: return "enum " + name + " : int64 { A" + name + " = -1, B" + name + " = 0x7fff_ffff_ffff_ffff }\n";
      case 2: return "type " + name + " = int16 range -" + number(9) + " .. " + number(100) + ";\n";
      case 3: errors_.push_back(name); return "error " + name + " { " + fields() + "}\n";
      default: return "record " + name + " { " + fields() + "}\n";
    }
  }
  std::string parameters(const char* prefix, bool windows) {
    std::string all;
    for (std::size_t count = input_.byte() % 4; count > 0; --count) {
      all += (all.empty() ? "" : ", ") + std::string(prefix) + std::to_string(count) + ": ";
      const std::uint8_t how = input_.byte();
      all += windows && how % 4 == 0 ? "bytes<" + std::to_string(1 + how * 40U) + ">" : type();
    }
    return all;
  }
  std::string procedure() {
    std::string made = "procedure P" + std::to_string(procedures_++) + "(" + parameters("a", true) + ")";
    if (const std::string results = parameters("r", true); !results.empty()) made += " -> (" + results + ")";
    if (!errors_.empty() && input_.byte() % 2 == 0) made += " raises (" + errors_[input_.byte() % errors_.size()] + ")";
    return made + ";\n";
  }

  Input& input_;
  std::size_t declared_ = 0;
  std::size_t procedures_ = 0;
  std::vector<std::string> errors_;
};

using Bytes = std::vector<std::byte>;

/// Padding bytes are ignored when read, and zero when written.
bool same_but_for_padding(std::span<const std::byte> written, std::span<const std::byte> read) {
  return std::ranges::equal(written, read, [](std::byte w, std::byte r) { return w == r || w == std::byte{0}; });
}

/// Values from a client, in its image or in the XDR in which they would be sent.
void attack_arguments(const Procedure& procedure, std::span<const std::byte> any) {
  Scratch scratch;
  ArgumentSizes sizes;
  const std::uint64_t most = sizes.most(procedure);
  for (const bool xdr : {false, true}) {
    Bytes packed(any.begin(), any.end());
    if (xdr && !pack_arguments(procedure, any, scratch, packed)) continue;
    netrpc::XdrWriter sent;
    if (!unpack_arguments(procedure, packed, scratch, sent)) {
      require(!xdr, "what has come in XDR can be sent so");
      continue;
    }
    require(sent.bytes().size() <= most, "arguments are no longer than was promised");
    Bytes again;
    require(pack_arguments(procedure, sent.bytes(), scratch, again), "what can be sent can be served");
    netrpc::XdrWriter sent_again;
    require(unpack_arguments(procedure, again, scratch, sent_again), "and sent again");
    require(std::ranges::equal(sent.bytes(), sent_again.bytes()), "and means the same");
    require(!xdr || same_but_for_padding(sent.bytes(), any), "a value has one spelling in XDR");
  }
}

void attack_results(const Procedure& procedure, std::span<const std::byte> any) {
  Scratch scratch;
  Bytes packed;
  const auto status = pack_results(procedure, any, scratch, packed);
  if (!status) return;
  require(*status <= procedure.raises.size(), "an error that is raised is declared");
  netrpc::XdrWriter returned;
  require(unpack_results(procedure, *status, packed, scratch, returned), "what came back can be returned");
  require(same_but_for_padding(returned.bytes(), any), "a value has one spelling in XDR");
}

void run(Input input) {
  const std::uint8_t how = input.byte();
  const std::string raw = how % 2 == 0 ? text_of(input.bytes(input.two() % 8192)) : Maker(input).make();
  std::string text = raw;
  if (how % 4 != 0) {
    stubgen::Diagnostics diagnostics;
    const auto compiled = stubgen::compile({"raw", raw}, diagnostics, stubgen::Origin::server);
    if (!compiled) return;
    text = compiled->canonical;
  }
  Declarations declarations;
  const auto declared = declarations.compiled(1000, text);
  if (!declared) {
    const bool known = declared.code() == Errc::interface_mismatch || declared.code() == Errc::not_supported;
    require(known && declared.error().text.size() <= 1000, "a refusal says why");
    require(std::ranges::all_of(declared.error().text, [](char c) { return c >= ' ' && c <= '~'; }), "in print");
    return require(how % 4 == 0 || declared.code() == Errc::not_supported, "a canonical text is understood");
  }
  const stubgen::Interface& interface = **declared;
  const auto same = declarations.compiled(1000, text);
  require(same && *same == *declared, "a text that is known is not compiled again");
  require(interface.canonical == text, "only a canonical text is understood");
  ArgumentSizes sizes;
  for (const Procedure& procedure : interface.procedures) (void)sizes.most(procedure);
  require(sizes.looked() <= text.size(), "work is bounded by the text");
  for (int i = 0; i < 8 && input.more(); ++i) {
    const Procedure& procedure = interface.procedures[input.byte() % interface.procedures.size()];
    const std::uint8_t kind = input.byte();
    const auto taken = input.bytes(input.byte());
    Bytes any(taken.begin(), taken.end());
    any.resize(any.size() + (kind >= 0xc0 ? kind : 0));
    if (kind % 2 == 0)
      attack_arguments(procedure, any);
    else
      attack_results(procedure, any);
  }
}

}  // namespace
}  // namespace lrpc::sun

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::sun::run({data, size});
  return 0;
}
