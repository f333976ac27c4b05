_pitlake() {
  local line word=${COMP_WORDS[COMP_CWORD]}
  [ "$word" != = ] || word=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
      :folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
      *) COMPREPLY+=("${line%% *}") ;;
    esac
  done < <("$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _pitlake pitlake
